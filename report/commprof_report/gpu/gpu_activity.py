"""The GPU activity of a run: how busy the GPUs were, how much communication was exposed, how much
was traced, and what tracing cost.

All times are sums over the devices of the selected ranks, and all shares are ratios of such sums
(overlap.py), never means of means. A device that several ranks share counts once, with what they
did on it together (overlap.py).

Names of kernels are made readable: demangled if c++filt is found (the second line), and shortened
(the third). A mangled name of a hundred bytes can expand to gigabytes, so its memory and time are
limited.

_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfEEEEvT1_
void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)
at::native::reduce_kernel<512, 1, ReduceOp<...>>

Counters and sensors are read, too: clock and what lowers it, memory in use, bytes over NVLink and
PCIe. Each rank reads the devices that it uses. The readings of a device that several ranks share
are those of one of them: the one with the most.
"""

from __future__ import annotations

import re
import subprocess
from collections import namedtuple
from collections.abc import Iterable, Sequence

from ..base import (
    AS_EVERYWHERE,
    Columns,
    Connection,
    Field,
    Flags,
    Histogram,
    Row,
    Table,
    Texts,
    View,
    among,
    gathered,
    measures,
    np,
    number,
    query,
    ratio,
    read,
    row_type,
    summarize,
    text,
    total,
    units,
    whole,
)
from ..run import histogram_of
from .overlap import (
    OTHER_STREAM,
    STATES,
    Busy,
    Group,
    busy,
    device_groups,
    incomplete_ranks,
    states_together,
)

OTHERS = "(other kernels)"
UNSEEN = ("none", "dormant", "refused")  # states of a rank whose GPUs were not traced


WINDOW = (
    number("rank", "as in `gpu_tracing`", "rank"),
    Field("begin_ns", "", "begins"),
    Field("end_ns", "", "time", of_row=lambda row: units.duration(row.end_ns - row.begin_ns)),
    text("ended", "", "ended"),
    Field("clock_error_ns", "", "clock error"),
    Field("records", "", "records"),
)
WindowRow = row_type("WindowRow", WINDOW)


# what a device, or all of them, did in the traced time
OF_TIME = (
    Field(
        "sms",
        "",
    ),
    Field(
        "communication_sms",
        "communication_sm_ns / communication_ns (table `gpu_device`): most SMs of a "
        "communication kernel, on average",
    ),
    Field("communication_most_sms", "as in `gpu_device`; `device` is CUDA's ordinal"),
    Field("traced_ns", "[Words](#words)"),
    Field("computing_ns", ""),
    Field("communicating_ns", ""),
    Field("copying_ns", ""),
    Field("in_mpi_ns", ""),
    Field("exposed_ns", ""),
    Field("strictly_exposed_ns", ""),
    Field("hidden_ns", ""),
    Field("only_copying_ns", ""),
    Field("idle_ns", ""),
    Field("starved_ns", ""),
    Field("exposed_mpi_ns", ""),
    Field(
        "computing_share",
        "the times over traced_ns, which overlap",
    ),
    Field("communicating_share", ""),
    Field("copying_share", ""),
    Field("in_mpi_share", ""),
    Field("exposed_share", ""),
    Field("idle_share", ""),
    Field("overlap", "hidden_ns / communicating_ns; null: no communication"),
)
# a device, or a rank's part of it
DEVICE = (
    Field("rank", "the rank; of a shared device the lowest selected one, see below"),
    Field(
        "ranks",
        "all ranks that used the device, selected or not; their number",
    ),
    Field("sharing_ranks", ""),
    Field("merged_ranks", "ranks whose activities are in this row"),
    Field("host", "as in `gpu_device`; `device` is CUDA's ordinal"),
    Field("device", ""),
    Field(
        "name",
        "",
    ),
    Field("uuid", ""),
    Field("kernels", ""),
    Field("copies", ""),
    Field("sets", ""),
    Field("first_ns", ""),
    Field("last_ns", ""),
    *OF_TIME,
)
ALGORITHM = (
    text("call", AS_EVERYWHERE, "call"),
    text("communicator", "", "communicator", 26),
    Field(
        "bytes_low",
        "its size; equal, except for merged sizes",
        "size",
        of_row=lambda row: units.size_range(row.bytes_low, row.bytes_high),
    ),
    Field("bytes_high", ""),
    Field(
        "algorithm",
        "as in `nccl_algorithm`",
        "carried out by",
        is_number=False,
        of_row=lambda row: nccl_algorithm_text(row.algorithm, row.protocol, row.channels),
    ),
    Field("protocol", ""),
    Field("channels", ""),
    Field("ranks", "ranks that launched it so; launches over all ranks"),
    Field("count", "", "count"),
)
BY_GRAPHS = total("count", lambda activities: activities.is_graph == 1)
KERNEL = (
    text(
        "kernel",
        "without return type and parameters, nested template arguments as `<...>`; `(other "
        "kernels)`: a table was full",
        "kernel",
        64,
    )._replace(of="name"),
    Field(
        "is_communication",
        "1: moves data between ranks",
        "class",
        lambda value: "communication" if value else "computing",
        False,
    ),
    Field("ranks", "ranks that ran it; its runs; runs launched by a graph"),
    Field("count", "", "count"),
    Field(
        "graph_count",
        "",
        "by graphs",
        of_row=lambda row: (
            units.share(row.graph_count / row.count) if row.graph_count else units.NO_VALUE
        ),
        of=BY_GRAPHS,
    ),
    Field(
        "total_ns",
        "its durations; concurrent kernels count in full",
        "time",
    ),
    Field("mean_ns", "", "mean"),
    Field("min_ns", ""),
    Field("p50_ns", "", "p50"),
    Field("p99_ns", "", "p99"),
    Field("max_ns", ""),
    Field(
        "share",
        "total_ns over the total_ns of all kernels",
        "of all",
        of=lambda groups: ratio(groups.sum("total_ns"), groups.sum("total_ns").sum()),
    ),
    Field(
        "demangled",
        "full name, by `c++filt`; as traced",
        of="name",
    ),
    Field("name", ""),
)
COPY = (
    Field(
        "kind",
        "as in `gpu_activity`",
        "copy",
        is_number=False,
        of_row=lambda row: f"copy {row.copy}" if row.kind == "copy" else row.kind,
    ),
    Field("copy", ""),
    Field(
        "is_pageable",
        "",
        "host memory",
        is_number=False,
        of_row=lambda row: memory_text(row),
    ),
    Field("is_managed", ""),
    Field(
        "bytes_low",
        "sizes in this row: above half of a power of two, up to that power",
        "size",
        of_row=lambda row: units.size_range(row.bytes_low, row.bytes_high),
        of=lambda groups: np.where(groups.bytes > 1, groups.bytes // 2 + 1, groups.bytes),
    ),
    Field("bytes_high", "", of="bytes"),
    Field("ranks", "as for kernels"),
    Field("count", "", "count"),
    Field("graph_count", "", of=BY_GRAPHS),
    Field("volume_bytes", "as in `gpu_activity`", "volume"),
    Field("total_ns", "their durations", "time"),
    Field("mean_ns", ""),
    Field("min_ns", ""),
    Field("p50_ns", "", "p50"),
    Field("p99_ns", "", "p99"),
    Field("max_ns", ""),
    Field(
        "bytes_per_s",
        "volume_bytes / total_ns",
        "GB/s",
        lambda value: units.NO_VALUE if value is None else units.three_digits(value / 1e9),
        of=lambda groups: ratio(groups.sum("volume_bytes") * 1e9, groups.sum("total_ns")),
    ),
)


def computes(activities: Activities) -> Flags:
    return activities.is_kernel & (activities.is_communication == 0)


def communicates(activities: Activities) -> Flags:
    return activities.is_kernel & (activities.is_communication == 1)


STREAM = (
    number(
        "rank",
        "as in `gpu_stream`; `device`: CUDA's ordinal",
        "rank",
    )._replace(of="world_rank"),
    number("device", "", "GPU"),
    Field(
        "stream",
        "",
        "stream",
        of_row=lambda row: (
            "others" if row.stream == OTHER_STREAM else f"{row.number} of context {row.context}"
        ),
    ),
    Field("context", ""),
    Field("number", ""),
    Field(
        "computing_kernels",
        "their numbers",
        "computing kernels",
        of=total("count", computes),
    ),
    Field(
        "communicating_kernels",
        "",
        "communicating kernels",
        of=total("count", communicates),
    ),
    Field(
        "copies",
        "",
        "copies",
        of_row=lambda row: units.count(row.copies + row.sets),
        of=total("count", among("kind", "copy")),
    ),
    Field("sets", "", of=total("count", among("kind", "memset"))),
    Field(
        "computing_ns",
        "sums of their durations; copying_ns includes memsets",
        "computing",
        of=total("total_ns", computes),
    ),
    Field("communicating_ns", "", "communicating", of=total("total_ns", communicates)),
    Field(
        "copying_ns",
        "",
        "copying",
        of=total("total_ns", lambda activities: ~activities.is_kernel),
    ),
    Field("volume_bytes", "bytes copied and set", "volume"),
)
NcclAlgorithmRow = row_type("NcclAlgorithmRow", ALGORITHM)
COPIED = ("copy", "is_pageable", "is_managed")
KERNELS = View(
    "GpuKernelRow",
    ("name", "is_communication"),
    KERNEL,
    lambda groups: (-groups.sum("total_ns"), groups.place("name"), groups.is_communication),
    where=lambda activities: activities.is_kernel,
)
COPIES = View(
    "GpuCopyRow",
    ("kind", *COPIED, "bytes"),
    COPY,
    lambda groups: (
        groups.place("kind"),
        -groups.spread(groups.sum("total_ns"), "kind", *COPIED),
        groups.place("copy"),
        groups.is_pageable,
        groups.is_managed,
        groups.bytes,
    ),
    where=lambda activities: ~activities.is_kernel,
)
TO_AND_FROM = View(  # what GPUs copied to the host and back
    "CopiedRow",
    ("copy",),
    {"copy": "copy", **measures("count", "volume_bytes", "total_ns")},
    lambda groups: (groups.place("copy"),),
    where=among("copy", "to device", "to host"),
)
STREAMS = View(
    "GpuStreamRow",
    ("world_rank", "stream"),
    STREAM,
    lambda groups: (-groups.sum("total_ns"), groups.world_rank, groups.stream),
)


# how much was traced, what was lost, and what tracing cost
RUN = (
    Field(
        "ranks",
        "selected ranks; those with a tracing window or a device; their devices, a shared one once",
    ),
    Field("traced_ranks", ""),
    Field("devices", ""),
    Field(
        "shared_devices",
        "devices that several ranks use; those left out, as times could not be merged",
    ),
    Field("unmerged_devices", ""),
    Field("names", "names of the devices"),
    Field(
        "wall_ns",
        "over the traced ranks: sum of wall times; sum of windows; window_ns / wall_ns",
    ),
    Field("window_ns", ""),
    Field("window_share", ""),
    Field("windows", "tracing windows"),
    Field(
        "empty_windows",
        "windows of a second or more without a record: the GPU was idle, or CUPTI delivered none",
    ),
    Field("records", "sums over ranks of the columns `gpu_...` of table `rank`"),
    Field("dropped_records", ""),
    Field("implausible_records", ""),
    Field("late_records", ""),
    Field("unattributed_records", ""),
    Field("lost_intervals", ""),
    Field("unmatched_operations", ""),
    Field(
        "unseen_graph_launches",
        "launches of CUDA graphs in windows without records, at least: their kernels may count "
        "as idle or exposed time",
    ),
    Field("clock_error_ns", "the maximum over all windows; null: not known for one of them"),
    Field(
        "cost_begin_ns",
        "sums over ranks of the columns `cost_gpu_...` of table `rank`",
    ),
    Field("cost_end_ns", ""),
)
GpuDeviceRow = row_type("GpuDeviceRow", DEVICE)
GpuRow = row_type("GpuRow", (*RUN, *OF_TIME))


class Gpu(namedtuple("Gpu", "summary devices parts ranks windows incomplete")):
    """parts: of each rank its own part of a device. incomplete: as incomplete_ranks."""

    @property
    def is_seen(self) -> bool:
        """Whether any GPU was traced."""
        return bool(self.summary.traced_ns or self.summary.windows or self.devices)


def gpu(connection: Connection) -> Gpu:
    """Activity of the GPUs of a Selection's ranks."""
    ranks = rank_rows(connection)
    windows = query.ask(connection, "gpu/gpu_windows", WindowRow)
    facts, incomplete = device_facts(connection), incomplete_ranks(connection)
    state_ns: dict[tuple[int, int], list[int]] = {}
    for row in query.rows(connection, "gpu/gpu_busy"):
        if row.rank not in incomplete:
            state_ns.setdefault((row.rank, row.device), [0] * STATES)[row.state] += row.ns
    devices, parts = _devices(connection, facts, state_ns)
    times = Busy(*(sum(getattr(row, key) for row in devices) for key in Busy._fields))
    summary = GpuRow(
        **_coverage(ranks, windows, devices, {row.rank for row in parts}),
        **communication_sms(own for own in facts if own.is_selected),
        **times._asdict(),
        **shares(times),
    )
    return Gpu(summary, devices, parts, ranks, windows, incomplete)


def rank_rows(connection: Connection) -> list[Row]:
    return list(query.rows(connection, "gpu/gpu_ranks"))


def device_facts(connection: Connection) -> list[Row]:
    """Facts on the devices of all ranks, selected or not."""
    return list(query.rows(connection, "gpu/gpu_devices"))


def selected_groups(facts: Iterable[Row]) -> list[Group]:
    """For each device the selected ranks on it."""
    found = ([own for own in group if own.is_selected] for group in device_groups(facts))
    return sorted((group for group in found if group), key=lambda group: group[0].rank)


def _devices(
    connection: Connection, facts: Sequence[Row], state_ns: dict[tuple[int, int], list[int]]
) -> tuple[list[Row], list[Row]]:
    """The devices; and what each rank did on its own."""
    on_it = {own: {one.rank for one in group} for group in device_groups(facts) for own in group}
    groups = selected_groups(facts)
    shared = [group for group in groups if len(group) > 1]
    merged = iter(states_together(connection, shared))
    devices, parts = [], []
    for group in groups:
        own_parts = [
            _device([own], on_it[own], state_ns.get((own.rank, own.device), [0] * STATES))
            for own in group
        ]
        parts += own_parts
        devices.append(
            own_parts[0] if len(group) == 1 else _device(group, on_it[group[0]], next(merged))
        )
    return devices, sorted(parts, key=lambda row: row.rank)


def _device(group: Group, ranks: set[int], state_ns: Sequence[int]) -> Row:
    """Activity of these ranks on a device."""
    first, times = group[0], busy(state_ns)
    spans = [
        (own.first_ns, own.last_ns) for own in group if None not in (own.first_ns, own.last_ns)
    ]
    return GpuDeviceRow(
        rank=first.rank,
        ranks=units.rank_list(ranks),
        sharing_ranks=len(ranks),
        merged_ranks=len({own.rank for own in group}),
        host=first.host,
        device=first.number,
        name=first.name,
        uuid=first.uuid,
        **{key: sum(getattr(own, key) for own in group) for key in ("kernels", "copies", "sets")},
        first_ns=min((first_ns for first_ns, _ in spans), default=None),
        last_ns=max((last_ns for _, last_ns in spans), default=None),
        **communication_sms(group),
        **times._asdict(),
        **shares(times),
    )


def communication_sms(devices: Iterable[Row]) -> dict:
    """The multiprocessors that communication kernels occupy at most, by the blocks of their
    grids."""
    known = [own for own in devices if own.communication_ns]
    kinds = {own.sms for own in known}
    ns = sum(own.communication_ns for own in known)
    return {
        "sms": kinds.pop() if len(kinds) == 1 else None,
        "communication_sms": sum(own.communication_sm_ns for own in known) / ns if ns else None,
        "communication_most_sms": max((own.communication_most_sms for own in known), default=None),
    }


def shares(times: Busy) -> dict[str, float | None]:
    """Shares of the traced time; overlap: of the time in which a GPU communicates."""
    of_time = {
        f"{key}_share": getattr(times, f"{key}_ns")
        for key in ("computing", "communicating", "copying", "in_mpi", "exposed", "idle")
    }
    return {
        **{key: ns / times.traced_ns if times.traced_ns else None for key, ns in of_time.items()},
        "overlap": times.hidden_ns / times.communicating_ns if times.communicating_ns else None,
    }


# what was lost, and what tracing cost
OF_RANKS = (
    "records",
    "dropped_records",
    "implausible_records",
    "late_records",
    "unattributed_records",
    "lost_intervals",
    "unmatched_operations",
    "unseen_graph_launches",
    "cost_begin_ns",
    "cost_end_ns",
)


def _coverage(
    ranks: Sequence[Row], windows: Sequence[Row], devices: Sequence[Row], on_devices: set[int]
) -> dict:
    traced = {row.rank for row in windows} | on_devices
    walls = {row.rank: row.wall_ns or 0 for row in ranks if row.rank in traced}
    window_ns = sum(row.end_ns - row.begin_ns for row in windows)
    wall_ns = sum(walls.values())
    errors = [row.clock_error_ns for row in windows]
    return {
        "ranks": len(ranks),
        "traced_ranks": len(traced),
        "devices": len(devices),
        "shared_devices": sum(row.sharing_ranks > 1 for row in devices),
        "unmerged_devices": sum(row.merged_ranks > 1 and not row.traced_ns for row in devices),
        "names": ", ".join(sorted({row.name for row in devices if row.name})),
        "wall_ns": wall_ns,
        "window_ns": window_ns,
        "window_share": min(1.0, window_ns / wall_ns) if wall_ns else None,
        "windows": len(windows),
        "empty_windows": empty_windows(windows),
        "clock_error_ns": max(errors) if errors and None not in errors else None,
        **{key: sum(getattr(row, key) for row in ranks) for key in OF_RANKS},
    }


def empty_windows(windows: Iterable[Row]) -> int:
    """Windows without records that are long enough for some."""
    return sum(
        not row.records and row.end_ns - row.begin_ns >= whole("gpu.empty-window")
        for row in windows
    )


class Activities(Table):
    """The kernels, copies and memsets of the selected ranks' GPUs."""

    text_names = frozenset(("kind", "name", "copy"))
    histogram: Histogram


def kernels(connection: Connection) -> list[Row]:
    rows = activity_rows(connection, KERNELS)
    names = demangled(row.name for row in rows)
    return [
        row._replace(kernel=shortened(name) or OTHERS, demangled=name)
        for row in rows
        for name in [names.get(row.name, row.name)]
    ]


def activity_rows(connection: Connection, view: View) -> list[Row]:
    texts = Texts()
    rows = read(Columns, query.run(connection, "gpu/gpu_chosen"), texts)
    is_kernel = texts.among(rows.kind, ("kernel",))
    activities = Activities(rows.changed(is_kernel=is_kernel), texts)
    buckets = "SELECT activity AS number, bucket, count FROM gpu_bucket"
    activities.histogram = histogram_of(connection, rows.activity, buckets)
    return summarize(activities, view)


def nccl_algorithms(connection: Connection) -> list[Row]:
    return query.ask(connection, "gpu/nccl_algorithms", NcclAlgorithmRow)


def nccl_algorithm_text(algorithm: str, protocol: str, channels: int) -> str:
    """As NCCL calls it, in small letters: ring, simple, 16 channels. Without a kernel: copy
    engine."""
    names = [name.lower().replace("_", " ") for name in (algorithm, protocol) if name]
    return ", ".join([*names, *([units.counted(channels, "channel")] if channels else [])])


def memory_text(row: Row) -> str:
    if row.is_managed:
        return "managed"
    if row.copy in ("to device", "to host"):
        return "pageable" if row.is_pageable else "pinned"
    return units.NO_VALUE


def nccl_times(connection: Connection) -> list[str]:
    return [value for (value,) in query.run(connection, "gpu/nccl_times")]


def graph_doubt(found: Gpu) -> str:
    """A warning that idle time may include kernels of CUDA graphs; empty if there is no reason to
    assume so."""
    launches = found.summary.unseen_graph_launches
    if launches:
        return f"{launches:,} {'launches' if launches > 1 else 'launch'} left no record"
    traced = set(traced_ranks(found))
    if any(row.has_unseen_captures for row in found.ranks if row.rank in traced):
        return "NCCL's operations were captured, and no graph left a record"
    return ""


def traced_ranks(found: Gpu) -> list[int]:
    return sorted({row.rank for row in found.windows} | {row.rank for row in found.parts})


def unseen(rows: Iterable[Row]) -> dict[tuple[str, str], list[int]]:
    """Ranks without a traced GPU, by state and reason."""
    return gathered(((row.state, row.reason), row.rank) for row in rows if row.state in UNSEEN)


MANGLED = re.compile(r"_Z[\w.$]{1,4094}", re.ASCII)
DEMANGLER = "ulimit -c 0; ulimit -t 2; ulimit -v 524288; exec c++filt"  # seconds of CPU time, KiB
MOST = 2000  # longer names are cut
ANONYMOUS = re.compile(r"(?:\(anonymous namespace\)|\{anonymous\}|<unnamed>)::")
LAMBDA = re.compile(r"\{lambda\([^{}]*\)(#\d+)\}")
NESTED = re.compile(r"(<[^<>]*)<[^<>]*>")  # arguments of a template within others
ARGUMENTS, NAMESPACE = re.compile("<[^<>]*>"), re.compile(r"\w*::")
PARAMETERS = re.compile(r"\([^()]*\)(?:[^():]*$)?")  # and what follows the last ones
HIDDEN = str.maketrans("() ", "\1\2\3")  # where they do not end a name
SHOWN = str.maketrans({"\0": "<...>", "\1": "(", "\2": ")", "\3": " "})


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Maps mangled names to demangled ones. A name that is not mangled, or that the demangler did
    not come to, stays as it is."""
    wanted = sorted({name for name in names if MANGLED.fullmatch(name)})
    given = "".join(f"{name}\n" for name in wanted).encode()
    command = ["/bin/sh", "-c", DEMANGLER]
    try:
        written = subprocess.run(command, input=given, capture_output=True, timeout=10).stdout
    except subprocess.TimeoutExpired as late:
        written = late.stdout or b""
    found = written.decode("utf-8", "replace").split("\n")[:-1]
    return dict(zip(wanted, found + wanted[len(found) :]))


def shortened(name: str) -> str:
    """Shortens a demangled name: omits return type, parameters and the namespaces of template
    arguments, and replaces nested template arguments by <...>."""
    text = LAMBDA.sub(r"{lambda\1}", ANONYMOUS.sub("", name[:MOST])).replace(" >", ">")
    text = _repeated(NESTED, "\\1\0", text.replace("operator()", "operator\1\2"))
    text = ARGUMENTS.sub(lambda own: NAMESPACE.sub("", own[0]).translate(HIDDEN), text)
    return _repeated(PARAMETERS, "", text).rpartition(" ")[2].translate(SHOWN) or name


def _repeated(pattern: re.Pattern, by: str, text: str) -> str:
    while (found := pattern.sub(by, text)) != text:
        text = found
    return text


READ = (
    Field(
        "rank",
        "the rank with most readings of the device; CUDA's ordinal",
        "rank",
        of_row=lambda row: row.ranks,
    ),
    Field(
        "device",
        "",
        "GPU",
        is_number=False,
        of_row=lambda row: f"{row.device} {units.shortened(row.name, 28)}",
    ),
    Field(
        "readings",
        "its readings (table `gpu_reading`); time from the first to the last",
        "readings",
    ),
    Field("span_ns", ""),
    Field(
        "clock_mean_mhz",
        "of the SMs' clock, over readings in which the device was not known to be idle",
        "MHz",
    ),
    Field("clock_least_mhz", "", "least"),
    Field("limit_readings", "readings in which it is known whether the clock was lowered"),
    Field(
        "throttled_share",
        "shares of these with the clock lowered: for any reason, power, heat, by the hardware "
        "otherwise",
        "throttled",
    ),
    Field("power_share", "", "power"),
    Field("heat_share", "", "heat"),
    Field("hardware_share", "", "hardware"),
    Field("memory_most_bytes", "the most memory in use in a reading", "memory"),
    Field(
        "nvlink_sent_bytes_per_s",
        "sum of the differences between readings over their time, without decreases; with"
        " `most` the largest difference over its time",
        "NVLink out",
    ),
    Field("nvlink_sent_most_bytes_per_s", ""),
    Field("nvlink_received_bytes_per_s", "", "NVLink in"),
    Field("nvlink_received_most_bytes_per_s", ""),
    Field("pcie_sent_bytes_per_s", "", "PCIe out"),
    Field("pcie_sent_most_bytes_per_s", ""),
    Field("pcie_received_bytes_per_s", "", "PCIe in"),
    Field("pcie_received_most_bytes_per_s", ""),
)
SENSOR = (
    *READ,
    Field("ranks", "as in `--by device`"),
    text("host", "", "host", 20),
    Field("name", ""),
    Field("uuid", ""),
    Field("memory_bytes", ""),
)
ReadRow = row_type("ReadRow", READ)  # sensors.sql; device: the rank's slot
GpuSensorRow = row_type("GpuSensorRow", SENSOR)  # device: CUDA's number


def sensors(connection: Connection) -> list[Row]:
    """A row for each device that the selected ranks read."""
    rows = {(row.rank, row.device): row for row in query.ask(connection, "gpu/sensors", ReadRow)}
    found = []
    for group in device_groups(device_facts(connection)):
        known = [own for own in group if (own.rank, own.device) in rows]
        if known:
            # the readings of the rank with most, of those that share the device
            own = max(known, key=lambda one: rows[one.rank, one.device].readings)
            row = rows[own.rank, own.device]._replace(device=own.number)
            ranks = units.rank_list({one.rank for one in group})
            found.append(GpuSensorRow(*row, ranks, own.host, own.name, own.uuid, own.memory_bytes))
    return sorted(found, key=lambda row: (row.rank, row.device))
