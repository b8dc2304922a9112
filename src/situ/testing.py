"""What users and benchmarks need to try a project without its real producers and consumers; nothing so far.

It may import everything but the surfaces above it (project, explain, app, cli). Tests of policies are
`situ.project.policy_tests`.
"""
