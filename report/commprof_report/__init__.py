"""hvprof-report: merges the files that the ranks of a run left behind and answers questions about them.

rank_files.py   which files a folder holds, and which of them belong to the run
ledger.py       the binary ledger; ledger_rows.py makes rows of the schema of it, ledger_samples.py of its samples, ledger_gpu.py of its GPUs
process.py      whether the process that wrote a ledger still lives
database.py     a SQLite file of a rank or of a merged run, checked as any file from outside
run.py          all of it as one database, with what spans ranks (sql/run.sql); thinning.py takes fewer samples, the same of all ranks;
                unsampled.py names the communicators without any
selection.py    --call --communicator --rank --bytes, and --bins (bins.py)
questions.py    the questions (sql/) and the named tuples that answer them
doing.py        what ranks are in, in words; stuck.py finds out who waits for whom (members.py: of a communicator)
gpu.py          what GPUs did; gpu_steps.py step by step, unions.py of intervals, kernel_names.py (demangler.py: a process of its own)
commands/       one module a command: docstring, add_arguments, run
plots/          draw(axes, rows), one module a picture; pictures.py saves them
page.py         the HTML page; prometheus.py the text format of Prometheus; trace.py the timeline for Perfetto
tables.py       rows as text, JSON or CSV; units.py writes numbers for people
"""

__version__ = "0.1.0"  # the Makefile takes it from here
SCHEMA_VERSION = 5
APPLICATION_ID = 0x636D7066  # "cmpf"
