"""Where Situ runs on Apache Spark; the only package that imports pyspark."""
