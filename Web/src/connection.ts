import { backoff } from "./backoff.js"
import { type Environment, isSuspension, type PageEvent } from "./environment.js"
import { TrebuchetError } from "./errors.js"
import { Heartbeat } from "./heartbeat.js"
import { isObject } from "./json.js"
import { Value } from "./store.js"
import type { ConnectOptions, JSONCoder, Status } from "./types.js"

/** Milliseconds. */
const connectTimeout = 10_000
/** How long a connection must have lasted for failures to be counted anew. */
const lasting = 10_000
/** The longest time for which a server can keep its clients away. */
const longestAbsence = 60_000

/** What the server says of itself. */
export interface Terms {
    session?: string
    callsPerConnection: number
    callBytesPerConnection: number
    messageSize: number
}

export const usualTerms: Terms = { callsPerConnection: 1024, callBytesPerConnection: 16 << 20, messageSize: 1 << 20 }

/** One WebSocket. */
export interface Line {
    /** There is none while a token is asked for. */
    _socket?: any
    _since: number
    /** Also of one that is left to its calls. */
    _heartbeat: Heartbeat
    /** Known once the server has answered `hello`: calls may go. */
    _terms?: Terms
}

/** Who is told how the connection fares. */
export interface ConnectionOwner {
    /** Streams go over this line from now on. */
    _opened(line: Line): void
    /** Calls go over it, too. */
    _greeted(line: Line): void
    /** A message that is none of the connection's own. What it throws ends the line. */
    _received(kind: string, payload: any, line: Line): void
    /** What was sent over it and not answered will not be any more. */
    _lost(line: Line, error: TrebuchetError): void
    /** There will be none, unless somebody asks. */
    _gaveUp(error: TrebuchetError): void
    /** Whether calls over the line wait for their answers. */
    _isUsing(line: Line): boolean
}

/** Keeps a client connected. */
export class Connection {
    readonly _status: Value<Status>
    /** The line of now, over which streams go. */
    _line: Line | undefined
    _isClosed = false

    private _attempt: Line | undefined
    /** Lines that go on until there is another one, and until what was sent over them is answered. */
    private _leaving = new Set<Line>()
    private _retry: any
    private _retryAt: number | undefined
    /** The server has said when to come back. */
    private _isTold = false
    private _connectTimer: any
    private _failures = 0
    private _wasLive = false
    /** Whether the page is suspended: frozen, or in the back/forward cache. */
    private _isSuspended = false
    /** Attempts in a row that were refused: as many as there are addresses, and all of them have. */
    private _refusals = 0
    /** The same of those that another attempt would meet with, too. */
    private _finals = 0
    _error: TrebuchetError | undefined
    private _unlisten: () => void
    /** Which of the addresses is the next: clients that know the same begin at different ones. */
    private _place: number

    constructor(
        private _addresses: readonly string[],
        private _options: ConnectOptions,
        private _world: Environment,
        private _coder: JSONCoder,
        private _owner: ConnectionOwner
    ) {
        this._status = new Value<Status>(
            { phase: "connecting", since: _world.now(), failures: 0 },
            { phase: "connecting", since: 0, failures: 0 }
        )
        this._place = Math.floor(_world.random() * _addresses.length)
        this._unlisten = _world.listen((event) => (isSuspension(event) ? this._suspend() : this._wake(event)))
        this._connect()
    }

    /** Whether there will be a connection without anybody's asking. */
    get _isExpected(): boolean {
        return !this._isClosed && !!(this._line || this._attempt || this._retry || this._isSuspended)
    }

    _send(line: Line, kind: string, payload: object): void {
        this._write(line, this._text(kind, payload))
    }

    _text(kind: string, payload: object): string {
        return this._coder.stringify({ type: kind, payload })
    }

    /** A line that has begun to close takes nothing; that it is lost is told by itself. */
    _write(line: Line, text: string): void {
        if (line._socket.readyState === 1) line._socket.send(text)
    }

    _reconnect(): void {
        if (this._isClosed) return
        this._failures = this._refusals = this._finals = 0
        this._error = undefined
        if (this._line) this._leave(this._line)
        const { _attempt: attempt } = this
        if (attempt) {
            // Its token may be that of who was signed in before.
            this._attempt = undefined
            this._world.clearTimeout(this._connectTimer)
            this._drop(attempt)
        }
        this._connect()
    }

    _close(): void {
        if (this._isClosed) return
        this._isClosed = true
        this._error = new TrebuchetError("unavailable", "the client was closed")
        this._unlisten()
        this._cancelRetry()
        this._world.clearTimeout(this._connectTimer)
        for (const line of [this._line, this._attempt, ...this._leaving]) if (line) this._drop(line)
        this._line = this._attempt = undefined
        this._tell()
        this._owner._gaveUp(this._error)
    }

    /** Lines that are left to their calls may go when these have been answered. */
    _settle(): void {
        if (!this._line) return
        for (const line of this._leaving) if (!this._owner._isUsing(line)) this._drop(line)
    }

    /** The line is no good any more: silent, or its server says what nobody understands. */
    _abandon(line: Line, text: string, weight = 0, code = "unavailable"): void {
        this._drop(line)
        this._ended(line, new TrebuchetError(code, text), weight)
    }

    /** Who is signed in is so no more. */
    _unauthenticated(line: Line, message: string): void {
        const code = "unauthenticated"
        if (line !== this._line) return
        if (typeof this._options.token === "function") return this._abandon(line, message, 0, code)
        // The connection stays, for what strangers may call.
        this._error = new TrebuchetError(code, message)
        this._refusals = Infinity
        this._tell()
    }

    _goAway(line: Line, milliseconds: number): void {
        if (line !== this._line) return
        this._leave(line)
        // A server that sends every client away at once is no better than one that fails.
        this._countAnew(line) || this._failures++
        // What it names is when it is back itself; others are there.
        this._schedule(this._addresses[1] ? 0 : Math.min(milliseconds, longestAbsence))
    }

    // What an attempt comes to

    private async _connect(): Promise<void> {
        if (this._isDone) return
        this._cancelRetry()
        const { token } = this._options
        const url = this._addresses[this._place++ % this._addresses.length] as string
        const line: Line = (this._attempt = {
            _since: 0,
            _heartbeat: new Heartbeat(
                this._world,
                () => this._send(line, "hello", {}),
                () => this._abandon(line, url + " says nothing")
            ),
        })
        let given: unknown
        try {
            // Waited for in any case: who connects has the client before anything happens.
            given = await (typeof token === "function" ? token() : token)
        } catch (error) {
            if (line === this._attempt) this._abandon(line, "no token: " + error, 0, "unauthenticated")
            return
        }
        if (line !== this._attempt) return
        // Others cannot stand in the field; said here, since the socket's own error would quote it.
        if (given && !/^[\w\-.~+]+$/.test(given as string)) {
            return this._abandon(line, "a token has letters, digits, -._~+", Infinity, "invalidArguments")
        }
        const protocols = ["trebuchet.v3"]
        if (given) protocols.push("bearer." + given)
        let socket: any
        try {
            const { WebSocket, location } = globalThis as any
            // All of them: one that is no address is noticed wherever this client begins.
            const address = (each: string) => new URL(each, location?.href).href.replace(/^http/, "ws")
            this._addresses.map(address)
            socket = new ((this._options.WebSocket as any) ?? WebSocket)(address(url), protocols)
        } catch {
            return this._abandon(line, "no WebSocket is given, or no address: " + this._addresses, Infinity)
        }
        line._socket = socket
        this._connectTimer = this._world.setTimeout(
            () => this._abandon(line, `${url} did not answer in ${connectTimeout / 1000} s`),
            connectTimeout
        )
        let status: number | undefined
        socket.onopen = () => this._opened(line, url)
        socket.onmessage = (event: any) => this._received(line, event.data)
        // Node's sockets tell the status, a browser tells nobody.
        socket.onerror = (event: any) => (status = Number(/response: (\d{3})/.exec(event?.message)?.[1]))
        socket.onclose = (event: any) => {
            const { code } = event
            const refusal = { 401: "unauthenticated", 403: "unauthorized" }[status as number]
            const weight = refusal ? (status === 403 || typeof token !== "function" ? 1 : -1) : 0
            const why = line._since
                ? `lost ${url} (${code}${event.reason ? " " + event.reason : ""})`
                : status
                ? `${url} answers ${status}`
                : `${url} cannot be reached, or refuses this page or its token`
            this._abandon(line, why, weight, refusal)
        }
        this._tell()
    }

    private _opened(line: Line, url: string): void {
        if (line._socket.protocol !== "trebuchet.v3") return this._abandon(line, url + " does not speak trebuchet.v3", 1)
        this._world.clearTimeout(this._connectTimer)
        this._attempt = undefined
        this._line = line
        line._since = this._world.now()
        this._send(line, "hello", {})
        line._heartbeat._start()
        // Streams first: who calls and observes sees what the call has changed.
        this._owner._opened(line)
        this._settle()
    }

    private _received(line: Line, text: unknown): void {
        line._heartbeat._heard()
        try {
            const { type, payload } = this._coder.parse(text as string) as any
            if (type === "error" && payload.code === "unauthenticated") this._unauthenticated(line, payload.message)
            else if (type === "hello" || (type === "error" && !line._terms)) this._greeted(line, payload)
            else if (type === "goAway") this._goAway(line, Number(payload.reconnectAfterMilliseconds) || 0)
            else this._owner._received(type, payload, line)
        } catch (error) {
            // A server that sends what nobody can read is not to be trusted with the rest.
            this._abandon(line, "no message: " + error)
        }
    }

    private _greeted(line: Line, payload: any): void {
        const isFirst = !line._terms
        // A server that does not know `hello` answers with an error, and keeps no answers.
        line._terms = { ...usualTerms, ...(isObject(payload.limits) && payload.limits), session: payload.session }
        if (!isFirst || line !== this._line) return
        this._wasLive = true
        this._refusals = this._finals = 0
        this._error = undefined
        this._tell()
        this._owner._greeted(line)
    }

    /**
     * A line is no more.
     *
     * @param weight 0 where another attempt may do better, 1 where none would at this address, infinite where none would at any;
     * -1 for who is refused but may have another token the next time
     */
    private _ended(line: Line, error: TrebuchetError, weight: number): void {
        if (line === this._attempt) {
            this._world.clearTimeout(this._connectTimer)
            this._attempt = undefined
            return this._failed(error, weight)
        }
        this._leaving.delete(line)
        const wasLine = line === this._line
        if (wasLine) {
            this._line = undefined
            this._countAnew(line)
        }
        this._owner._lost(line, error)
        if (wasLine) this._failed(error, 0)
    }

    private _failed(error: TrebuchetError, weight: number): void {
        if (this._isDone) return
        this._error = error
        this._failures++
        // Another address may let this client in.
        this._refusals = weight && this._refusals + Math.abs(weight)
        this._finals = weight > 0 ? this._finals + weight : 0
        if (this._finals < this._addresses.length) return this._schedule()
        this._tell()
        this._owner._gaveUp(error)
    }

    /** Closed, connected, connecting, or suspended. */
    private get _isDone(): unknown {
        return this._isClosed || this._line || this._attempt || this._isSuspended
    }

    private _schedule(atLeast = 0): void {
        if (this._isDone) return
        this._cancelRetry()
        this._isTold = !!atLeast
        const { initialDelay = 200, maximumDelay = 10_000 } = this._options
        const delay = Math.max(atLeast, backoff(Math.ceil(this._failures / this._addresses.length), initialDelay, maximumDelay, this._world.random()))
        this._retryAt = this._world.now() + delay
        this._retry = this._world.setTimeout(() => this._connect(), delay)
        this._tell()
    }

    private _cancelRetry(): void {
        this._world.clearTimeout(this._retry)
        this._retry = this._retryAt = undefined
        this._isTold = false
    }

    private _countAnew(line: Line): boolean {
        const hasLasted = this._world.now() - line._since >= lasting
        if (hasLasted) this._failures = 0
        return hasLasted
    }

    // The end of a line

    /** Nothing more goes over the line of now; what was sent may be answered. */
    private _leave(line: Line): void {
        this._line = undefined
        this._leaving.add(line)
        this._tell()
    }

    private _drop(line: Line): void {
        this._leaving.delete(line)
        const { _socket: socket } = line
        if (!socket) return
        line._heartbeat._stop()
        socket.onopen = socket.onmessage = socket.onclose = null
        // Node's sockets throw an error that nobody listens to.
        socket.onerror = () => {}
        socket.close()
    }

    /**
     * Closes the connections of a page that is about to be suspended. An open one would be dead at the resumption and still look live, and
     * browsers keep no page with one in their back/forward cache.
     */
    private _suspend(): void {
        // A client that was refused stays so.
        if (!this._isExpected) return
        const { _line: line, _attempt: attempt } = this
        this._isSuspended = true
        this._cancelRetry()
        this._world.clearTimeout(this._connectTimer)
        this._line = this._attempt = undefined
        if (line) this._countAnew(line)
        const error = (this._error = new TrebuchetError("unavailable", "the page was suspended"))
        for (const each of [line, attempt, ...this._leaving]) {
            if (!each) continue
            this._drop(each)
            this._owner._lost(each, error)
        }
        this._tell()
    }

    /** The network, or the page, has come back or gone. */
    private _wake({ type: kind }: PageEvent): void {
        if (this._isSuspended && (kind === "pageshow" || kind === "resume" || this._world.isVisible())) {
            this._isSuspended = false
            this._failures = 0
            this._connect()
        }
        this._tell()
        if (!this._world.isVisible()) return
        // Those too that are left to their calls: nothing else would ever tell that one of them is dead.
        for (const line of [this._line, ...this._leaving]) line?._heartbeat._ask(/line/.test(kind))
        if (this._retry && !this._isTold) this._connect()
    }

    private _tell(): void {
        const before = this._status.getSnapshot()
        const phase = this._isClosed
            ? "offline"
            : this._refusals >= this._addresses.length
            ? "refused"
            : this._line?._terms
            ? "live"
            : !this._world.isOnline()
            ? "offline"
            : this._wasLive
            ? "stale"
            : "connecting"
        const status: Status = {
            phase,
            since: phase === before.phase ? before.since : this._world.now(),
            failures: this._failures,
            error: this._error,
            retryAt: this._retryAt,
        }
        const names = Object.keys(status) as (keyof Status)[]
        if (names.some((name) => status[name] !== before[name])) this._status.set(status)
    }
}
