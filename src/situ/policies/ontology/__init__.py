"""The domain that policies speak of: concepts with attributes, groups, containers, relationships and measures.

`declare` reads `ontology.yaml` as it is written, `model` holds the result and works generalisation into it,
`relationships` checks the functions of relationships, `load` joins the steps and writes the canonical form. It must not
know any policy, source or action; it takes only the names of the two sides (`LEFT`, `RIGHT`) from
`situ.policies.model`.

Front door: `load` (load_ontology, ontology_as_json, ontology_from_json, ontology_as_file), `model`
(Ontology, Concept, ConceptAttribute, Relationship, ConceptMeasure, containers_of), `declare` (ONTOLOGY_KEYS,
RELATIONSHIP_KEYS, MEASURE_KEYS), `relationships` (FUNCTIONS).
"""
