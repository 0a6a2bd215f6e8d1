"""The page of hvprof-report-top(1): Python's own HTTP server, which shows what the command has seen
last and takes no orders.

Whoever does not know the address, which holds a random token, finds nothing. Reading the run is the
command's; a request for the whole page alone reads it anew, one at a time.

Anybody may connect, in any number, and say nothing or little. So connections are few: where there
are MOST_CONNECTIONS, the next one takes the place of the one that has waited longest without a
request, which has REQUEST_S in all. A browser asks at once, and is then safe.
"""

from __future__ import annotations

import argparse
import secrets
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from ..base import ReportError, print_note, units
from ..display import page
from ..display.tables import Column
from . import common, html

ANY_ADDRESSES = ("0.0.0.0", "::")
MOST_SCREENS = 300  # of which the courses are drawn
MOST_RANKS = 64
MOST_CONNECTIONS = 16
REQUEST_S = 10  # from a connection to the end of its request
SLOW_S = 30  # for an answer to be taken
HEADERS = {
    "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
}


class Screen(NamedTuple):
    """One look at the run. `end`: who ended how; empty: the run goes on."""

    is_first: bool
    head: list[str]
    columns: list[Column]
    # in the order that was asked for; those that have ended are left out, unless all have
    ranks: Sequence[object]
    mpi_share: float  # of the time, on average
    bytes_per_s: float
    end: str


class Server(ThreadingHTTPServer):
    """With a thread for each of a bounded number of connections."""

    daemon_threads = True
    request_queue_size = 128  # connections that the kernel holds meanwhile

    def __init__(self, address: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        # those without a request so far, and until when; the oldest first
        self.waiting: dict[socket.socket, float] = {}
        family, _, _, _, bound = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self.address_family = family
        # an address that getaddrinfo gives can be bound
        super().__init__(bound, handler)  # type: ignore[arg-type]

    # the requests of a TCP server are sockets
    def process_request(  # type: ignore[override]
        self, request: socket.socket, client_address: Any
    ) -> None:
        if not self.free.acquire(blocking=False):
            self._drop(list(self.waiting)[:1])
            if not self.free.acquire(timeout=1):  # all are being answered
                self.shutdown_request(request)
                return
        self.waiting[request] = time.monotonic() + REQUEST_S
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._end(request)
            raise

    def process_request_thread(  # type: ignore[override]
        self, request: socket.socket, client_address: Any
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._end(request)

    def service_actions(self) -> None:
        """Called twice a second, also while nobody connects."""
        now_s = time.monotonic()
        self._drop([request for request, until_s in list(self.waiting.items()) if until_s < now_s])

    def handle_error(self, _request: object, _client_address: object) -> None:
        """Clients break connections at any time; other errors are ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print_note(f"the page could not be shown: {type(error).__name__} {error}")

    def _drop(self, requests: Sequence[socket.socket]) -> None:
        """Their threads read the end of the connection, and end."""
        for request in requests:
            self.waiting.pop(request, None)
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def _end(self, request: socket.socket) -> None:
        self.waiting.pop(request, None)
        self.free.release()


class LivePage:
    """The page of one run."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.token = secrets.token_urlsafe(16)
        self.title, self.now = "commprof", ""
        # share of the time in MPI, bytes per second
        self.courses: deque[tuple[float, float]] = deque(maxlen=MOST_SCREENS)
        self.reading = threading.Lock()
        try:
            self.server = Server(arguments.listen, arguments.web, self._handler())
        except (OSError, UnicodeError) as error:  # a host name may be none
            where = f"{bracketed(arguments.listen)}:{arguments.web}"
            why = getattr(error, "strerror", None) or error
            raise ReportError(where, f"no page can be shown there: {why}") from None

    @property
    def address(self) -> str:
        host, port = self.server.server_address[:2]
        name = socket.gethostname() if host in ANY_ADDRESSES else bracketed(str(host))
        return f"http://{name}:{port}/{self.token}/"

    def show(self, screen: Screen) -> None:
        self.courses.append((screen.mpi_share, screen.bytes_per_s))
        self.title = screen.head[0].partition(":")[0]
        self.now = "\n".join(parts(screen, self.courses))

    def wait(self) -> None:
        """Until Ctrl-C."""
        threading.Event().wait()

    def answer(self, path: str) -> str | None:
        """None: there is no such page."""
        _, token, name = (*path.split("/", 2), "", "")[:3]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        if name == "now":
            return self.now
        if name == "page":
            with self.reading:
                return html.page_of(
                    common.open_selected(self.arguments, with_samples=True),
                    common.is_whole(self.arguments),
                )
        return (
            page.live_page(f"commprof: {self.title}", self.now, self.arguments.every) if not name
            else None
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        live = self

        class Handler(BaseHTTPRequestHandler):
            timeout = SLOW_S

            def do_GET(self) -> None:
                live.server.waiting.pop(self.request, None)
                try:
                    found, status = live.answer(self.path), HTTPStatus.OK
                except ReportError as error:
                    found, status = page.text(error), HTTPStatus.SERVICE_UNAVAILABLE
                if found is None:
                    found, status = "", HTTPStatus.NOT_FOUND
                body = found.encode("utf-8", "replace")
                try:
                    self.send_response(status)
                    for name, value in {**HEADERS, "Content-Length": str(len(body))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    """The browser no longer wants it."""

            def version_string(self) -> str:
                return "hvprof-report"

            def log_message(self, *_: object) -> None:
                """The terminal is the user's."""

        return Handler


def bracketed(address: str) -> str:
    """As it is in the address of a page: [::1]."""
    return f"[{address}]" if ":" in address else address


@contextmanager
def served(arguments: argparse.Namespace) -> Iterator[LivePage]:
    live = LivePage(arguments)
    threading.Thread(target=live.server.serve_forever, daemon=True).start()
    try:
        yield live
    finally:
        live.server.shutdown()
        live.server.server_close()


def parts(screen: Screen, courses: Sequence[tuple[float, float]]) -> list[str]:
    mpi_shares, bandwidths = zip(*courses)
    title, _, head = screen.head[0].partition(": ")
    lines = [head, *screen.head[1:], *filter(None, [screen.end])]
    return [
        page.header(title, lines, [], []),
        page.section(
            "Look by look", "All ranks together.",
            page.course("time in MPI", mpi_shares, units.share),
            page.course("bytes", bandwidths, units.bandwidth),
        ),
        page.section(
            "Ranks", "",
            page.table(
                screen.columns, screen.ranks, MOST_RANKS,
                "are shown; --sort and --rank choose others",
            ),
        ),
        '<p><a href="page">The whole page, of this moment</a></p>',
    ]
