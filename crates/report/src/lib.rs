//! Result tables to the terminal, to Parquet and to one self-contained HTML page.
