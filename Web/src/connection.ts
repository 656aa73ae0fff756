import { backoff } from "./backoff.js"
import { type Environment, isSuspension, type PageEvent } from "./environment.js"
import { TrebuchetError } from "./errors.js"
import { Heartbeat } from "./heartbeat.js"
import { isObject } from "./json.js"
import { Value } from "./store.js"
import type { ConnectOptions, JSONCoder, Status } from "./types.js"

/** The timeout of a connection attempt, in milliseconds. */
const connectTimeout = 10_000
/** The lifetime in milliseconds after which a connection resets the failure count. */
const lasting = 10_000
/** The longest delay in milliseconds that a server can request before a reconnect. */
const longestAbsence = 60_000

/** The limits and the call session that the server announces. */
export interface Terms {
    session?: string
    callsPerConnection: number
    callBytesPerConnection: number
    messageSize: number
}

export const usualTerms: Terms = { callsPerConnection: 1024, callBytesPerConnection: 16 << 20, messageSize: 1 << 20 }

/** One WebSocket connection. */
export interface Line {
    /** The socket; undefined while the client waits for a token. */
    _socket?: any
    _since: number
    /** The heartbeat, which also monitors a draining connection. */
    _heartbeat: Heartbeat
    /** The server's terms; undefined until the response to `hello`. Calls can be sent once they are known. */
    _terms?: Terms
}

/** The receiver of connection events. */
export interface ConnectionOwner {
    /** Streams use this connection from now on. */
    _opened(line: Line): void
    /** Calls also use this connection from now on. */
    _greeted(line: Line): void
    /** Handles a message that does not belong to the connection itself. An error that it throws ends the connection. */
    _received(kind: string, payload: any, line: Line): void
    /** The connection is lost; requests without a response will receive none. */
    _lost(line: Line, error: TrebuchetError): void
    /** No attempt follows until the app requests one. */
    _gaveUp(error: TrebuchetError): void
    /** Returns true if calls wait for responses over this connection. */
    _isUsing(line: Line): boolean
}

/** Keeps a client connected. */
export class Connection {
    readonly _status: Value<Status>
    /** The current connection, which carries streams. */
    _line: Line | undefined
    _isClosed = false

    private _attempt: Line | undefined
    /** Draining connections: each stays open until another connection exists and its calls have their responses. */
    private _draining = new Set<Line>()
    private _retry: any
    private _retryAt: number | undefined
    /** True if the server has set the delay before the next attempt. */
    private _isServerDelay = false
    private _connectTimer: any
    private _failures = 0
    private _wasLive = false
    /** True while the page is suspended: frozen, or in the back/forward cache. */
    private _isSuspended = false
    /** The number of consecutive refused attempts. The phase is `refused` once every address has refused the client. */
    private _refusals = 0
    /** The number of consecutive refusals that would also apply to another attempt. */
    private _finals = 0
    _error: TrebuchetError | undefined
    private _unlisten: () => void
    /** The index of the next address. It starts at random, so that clients with the same list begin at different servers. */
    private _place: number

    constructor(
        private _addresses: readonly string[],
        private _options: ConnectOptions,
        private _environment: Environment,
        private _coder: JSONCoder,
        private _owner: ConnectionOwner
    ) {
        this._status = new Value<Status>(
            { phase: "connecting", since: _environment.now(), failures: 0 },
            { phase: "connecting", since: 0, failures: 0 }
        )
        this._place = Math.floor(_environment.random() * _addresses.length)
        this._unlisten = _environment.listen((event) => (isSuspension(event) ? this._suspend() : this._wake(event)))
        this._connect()
    }

    /** True if a connection exists, or will be made without a request by the app. */
    get _isExpected(): boolean {
        return !this._isClosed && !!(this._line || this._attempt || this._retry || this._isSuspended)
    }

    _send(line: Line, kind: string, payload: object): void {
        this._write(line, this._text(kind, payload))
    }

    _text(kind: string, payload: object): string {
        return this._coder.stringify({ type: kind, payload })
    }

    /** Sends a message. A closing connection discards it, and reports its loss separately. */
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
            // Its token may belong to the user who was signed in before.
            this._attempt = undefined
            this._environment.clearTimeout(this._connectTimer)
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
        this._environment.clearTimeout(this._connectTimer)
        for (const line of [this._line, this._attempt, ...this._draining]) if (line) this._drop(line)
        this._line = this._attempt = undefined
        this._updateStatus()
        this._owner._gaveUp(this._error)
    }

    /** Closes draining connections whose calls all have responses. */
    _settle(): void {
        if (!this._line) return
        for (const line of this._draining) if (!this._owner._isUsing(line)) this._drop(line)
    }

    /** Closes a connection that is silent or sends invalid messages. */
    _abandon(line: Line, text: string, weight = 0, code = "unavailable"): void {
        this._drop(line)
        this._ended(line, new TrebuchetError(code, text), weight)
    }

    /** Handles the end of the user's authentication. */
    _unauthenticated(line: Line, message: string): void {
        const code = "unauthenticated"
        if (line !== this._line) return
        if (typeof this._options.token === "function") return this._abandon(line, message, 0, code)
        // The connection stays open for calls that need no authentication.
        this._error = new TrebuchetError(code, message)
        this._refusals = Infinity
        this._updateStatus()
    }

    _goAway(line: Line, milliseconds: number): void {
        if (line !== this._line) return
        this._leave(line)
        // A server that immediately drains every client counts as a failure.
        this._resetFailures(line) || this._failures++
        // The server names the time of its restart; other addresses are available before.
        this._schedule(this._addresses[1] ? 0 : Math.min(milliseconds, longestAbsence))
    }

    // Connection attempts

    private async _connect(): Promise<void> {
        if (this._isDone) return
        this._cancelRetry()
        const { token } = this._options
        const url = this._addresses[this._place++ % this._addresses.length] as string
        const line: Line = (this._attempt = {
            _since: 0,
            _heartbeat: new Heartbeat(
                this._environment,
                () => this._send(line, "hello", {}),
                () => this._abandon(line, url + " does not respond")
            ),
        })
        let given: unknown
        try {
            // The client always waits here, so the caller of `connect` has the client before any event.
            given = await (typeof token === "function" ? token() : token)
        } catch (error) {
            if (line === this._attempt) this._abandon(line, "no token: " + error, 0, "unauthenticated")
            return
        }
        if (line !== this._attempt) return
        // Other characters are invalid in the header field. The check is here because the socket's error would quote the token.
        if (given && !/^[\w\-.~+]+$/.test(given as string)) {
            return this._abandon(line, "a token consists of letters, digits and -._~+", Infinity, "invalidArguments")
        }
        const protocols = ["trebuchet.v3"]
        if (given) protocols.push("bearer." + given)
        let socket: any
        try {
            const { WebSocket, location } = globalThis as any
            // This checks all addresses, so that an invalid one is detected wherever the client begins.
            const address = (each: string) => new URL(each, location?.href).href.replace(/^http/, "ws")
            this._addresses.map(address)
            socket = new ((this._options.WebSocket as any) ?? WebSocket)(address(url), protocols)
        } catch {
            return this._abandon(line, "no WebSocket class, or no address: " + this._addresses, Infinity)
        }
        line._socket = socket
        this._connectTimer = this._environment.setTimeout(
            () => this._abandon(line, `${url} did not respond within ${connectTimeout / 1000} s`),
            connectTimeout
        )
        let status: number | undefined
        socket.onopen = () => this._opened(line, url)
        socket.onmessage = (event: any) => this._received(line, event.data)
        // Node's sockets report the status; browsers do not.
        socket.onerror = (event: any) => (status = Number(/response: (\d{3})/.exec(event?.message)?.[1]))
        socket.onclose = (event: any) => {
            const { code } = event
            const refusal = { 401: "unauthenticated", 403: "unauthorized" }[status as number]
            const weight = refusal ? (status === 403 || typeof token !== "function" ? 1 : -1) : 0
            const why = line._since
                ? `lost ${url} (${code}${event.reason ? " " + event.reason : ""})`
                : status
                ? `${url} responds with ${status}`
                : `${url} is unreachable, or rejects this page or its token`
            this._abandon(line, why, weight, refusal)
        }
        this._updateStatus()
    }

    private _opened(line: Line, url: string): void {
        if (line._socket.protocol !== "trebuchet.v3") return this._abandon(line, url + " does not support trebuchet.v3", 1)
        this._environment.clearTimeout(this._connectTimer)
        this._attempt = undefined
        this._line = line
        line._since = this._environment.now()
        this._send(line, "hello", {})
        line._heartbeat._start()
        // Streams begin before calls, so that an observing caller receives the changes that its call makes.
        this._owner._opened(line)
        this._settle()
    }

    private _received(line: Line, text: unknown): void {
        line._heartbeat._didReceive()
        try {
            const { type, payload } = this._coder.parse(text as string) as any
            if (type === "error" && payload.code === "unauthenticated") this._unauthenticated(line, payload.message)
            else if (type === "hello" || (type === "error" && !line._terms)) this._greeted(line, payload)
            else if (type === "goAway") this._goAway(line, Number(payload.reconnectAfterMilliseconds) || 0)
            else this._owner._received(type, payload, line)
        } catch (error) {
            // A server that sends malformed messages is not trusted with the rest.
            this._abandon(line, "invalid message: " + error)
        }
    }

    private _greeted(line: Line, payload: any): void {
        const isFirst = !line._terms
        // A server that does not support `hello` responds with an error, and has no idempotency cache.
        line._terms = { ...usualTerms, ...(isObject(payload.limits) && payload.limits), session: payload.session }
        if (!isFirst || line !== this._line) return
        this._wasLive = true
        this._refusals = this._finals = 0
        this._error = undefined
        this._updateStatus()
        this._owner._greeted(line)
    }

    /**
     * Handles the end of a connection or of an attempt.
     *
     * @param weight the weight of the failure:
     * - 0: another attempt may succeed.
     * - 1: no attempt at this address would succeed.
     * - infinite: no attempt at any address would succeed.
     * - -1: the client was refused, but may have another token next time.
     */
    private _ended(line: Line, error: TrebuchetError, weight: number): void {
        if (line === this._attempt) {
            this._environment.clearTimeout(this._connectTimer)
            this._attempt = undefined
            return this._failed(error, weight)
        }
        this._draining.delete(line)
        const wasLine = line === this._line
        if (wasLine) {
            this._line = undefined
            this._resetFailures(line)
        }
        this._owner._lost(line, error)
        if (wasLine) this._failed(error, 0)
    }

    private _failed(error: TrebuchetError, weight: number): void {
        if (this._isDone) return
        this._error = error
        this._failures++
        // Another address may admit this client.
        this._refusals = weight && this._refusals + Math.abs(weight)
        this._finals = weight > 0 ? this._finals + weight : 0
        if (this._finals < this._addresses.length) return this._schedule()
        this._updateStatus()
        this._owner._gaveUp(error)
    }

    /** True if the client is closed, connected, connecting, or suspended. */
    private get _isDone(): unknown {
        return this._isClosed || this._line || this._attempt || this._isSuspended
    }

    private _schedule(atLeast = 0): void {
        if (this._isDone) return
        this._cancelRetry()
        this._isServerDelay = !!atLeast
        const { initialDelay = 200, maximumDelay = 10_000 } = this._options
        const delay = Math.max(atLeast, backoff(Math.ceil(this._failures / this._addresses.length), initialDelay, maximumDelay, this._environment.random()))
        this._retryAt = this._environment.now() + delay
        this._retry = this._environment.setTimeout(() => this._connect(), delay)
        this._updateStatus()
    }

    private _cancelRetry(): void {
        this._environment.clearTimeout(this._retry)
        this._retry = this._retryAt = undefined
        this._isServerDelay = false
    }

    private _resetFailures(line: Line): boolean {
        const hasLasted = this._environment.now() - line._since >= lasting
        if (hasLasted) this._failures = 0
        return hasLasted
    }

    // Closing of connections

    /** Starts to drain the current connection: it accepts no more calls, and delivers outstanding responses. */
    private _leave(line: Line): void {
        this._line = undefined
        this._draining.add(line)
        this._updateStatus()
    }

    private _drop(line: Line): void {
        this._draining.delete(line)
        const { _socket: socket } = line
        if (!socket) return
        line._heartbeat._stop()
        socket.onopen = socket.onmessage = socket.onclose = null
        // Node's sockets throw an error event that has no handler.
        socket.onerror = () => {}
        socket.close()
    }

    /**
     * Closes the connections of a page before its suspension. An open connection would be dead after the resumption and still appear live.
     * Browsers also exclude pages with an open connection from the back/forward cache.
     */
    private _suspend(): void {
        // A refused client stays refused.
        if (!this._isExpected) return
        const { _line: line, _attempt: attempt } = this
        this._isSuspended = true
        this._cancelRetry()
        this._environment.clearTimeout(this._connectTimer)
        this._line = this._attempt = undefined
        if (line) this._resetFailures(line)
        const error = (this._error = new TrebuchetError("unavailable", "the page was suspended"))
        for (const each of [line, attempt, ...this._draining]) {
            if (!each) continue
            this._drop(each)
            this._owner._lost(each, error)
        }
        this._updateStatus()
    }

    /** Handles a change of the network or of the page's visibility. */
    private _wake({ type: kind }: PageEvent): void {
        if (this._isSuspended && (kind === "pageshow" || kind === "resume" || this._environment.isVisible())) {
            this._isSuspended = false
            this._failures = 0
            this._connect()
        }
        this._updateStatus()
        if (!this._environment.isVisible()) return
        // This includes draining connections: no other event would detect that one of them is dead.
        for (const line of [this._line, ...this._draining]) line?._heartbeat._probe(/line/.test(kind))
        if (this._retry && !this._isServerDelay) this._connect()
    }

    private _updateStatus(): void {
        const before = this._status.getSnapshot()
        const phase = this._isClosed
            ? "offline"
            : this._refusals >= this._addresses.length
            ? "refused"
            : this._line?._terms
            ? "live"
            : !this._environment.isOnline()
            ? "offline"
            : this._wasLive
            ? "stale"
            : "connecting"
        const status: Status = {
            phase,
            since: phase === before.phase ? before.since : this._environment.now(),
            failures: this._failures,
            error: this._error,
            retryAt: this._retryAt,
        }
        const names = Object.keys(status) as (keyof Status)[]
        if (names.some((name) => status[name] !== before[name])) this._status.set(status)
    }
}
