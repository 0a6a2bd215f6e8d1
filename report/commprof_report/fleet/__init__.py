"""The jobs of a centre: added to a store of Parquet files, which any engine can ask."""
