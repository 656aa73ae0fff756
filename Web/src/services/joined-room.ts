import type { Backend } from "./backend.js"
import { needSame } from "./build.js"
import { EventCursor } from "./event-cursor.js"
import { follow } from "./observed-query.js"
import { closed, delayAfter, failure, pauseAfter, reasonOf, wait } from "./rejections.js"
import type { OpenRoom } from "./room.js"
import { secret } from "./random-token.js"
import type { TrebuchetError } from "./trebuchet.js"
import type { Peer, RoomEvent, RoomStatus } from "./types.js"
import { copied, isSame } from "./values.js"

/** The maximum number of events that wait to be published, or to be delivered. */
const waitingEvents = 256
/** The maximum number of own memberships that a client remembers, and of characters in their ids. */
const mostSessions = 64
const longestSession = 256
/** The temporary errors of rooms, in addition to those of all services. */
const passing = /^(roomClosed|roomFull|serverFull|tooManySessions|alreadyJoined|kicked)$/

function pauseOf(error: any, failures: number, isSignedIn?: unknown): number | undefined {
    const reason = reasonOf(error)
    if (!reason || !passing.test(reason)) return pauseAfter(error, failures, isSignedIn)
    return error.data[reason].retryAfterMilliseconds ?? error.retryAfter ?? delayAfter(failures)
}

/** Returns true if a repeated call would fail in the same way. */
const isFinal = (error: any): boolean => pauseAfter(error, 0) === undefined

const aboutPresence = /TooLarge|tooDeep|invalidValue/

interface Publication {
    readonly _topic: string
    readonly _payload: unknown
    /** The id of the user who publishes the event; empty for an anonymous user. */
    readonly _account: string
    /** True while its call is in progress. */
    _isSent?: boolean
    _resolve(number: number): void
    _reject(error: unknown): void
}

const wasLeft = (): TrebuchetError => failure("cancelled", "the room was left")

const joining = "join(presence:token:attempt:)"

/** The value of `_shown` while the presence at the server is unknown. */
const unknown = NaN

/** Keeps this client in a room, over all its connections, until it leaves. */
export class JoinedRoom {
    private _actor: string
    private _attempt = secret()
    private _token: string | null = null
    /** The newest memberships of this client, which may remain in the roster until their grace period ends. */
    private _sessions = new Set<string>()
    private _cursor = new EventCursor()
    private _shown: unknown = unknown
    /** The presence that was last sent. */
    private _sent: unknown = null
    private _outbox: Publication[] = []
    private _events: (() => void) | undefined
    private _incoming: RoomEvent[] = []
    private _mustCatchUp = false
    private _isTaking = false
    /** A counter that increases with each connection, and when the room must be joined again. */
    private _turn = 0
    private _isJoined = false
    /** The connection over which a join was sent without a response; the join may have created a membership. */
    private _requestLine = 0
    private _failures = 0
    /**
     * The error of a stream that ended while the room was joined, until that stream begins again. `_isOfEvents` is true if it is the event
     * stream.
     */
    private _refusal: TrebuchetError | undefined
    private _isOfEvents = false
    private _left: Promise<void> | undefined
    private _didLeave: () => void = () => {}
    private _wake: () => void = () => {}
    private _unfollow: () => void = () => {}
    private _unlisten: () => void

    constructor(private _backend: Backend, private _room: OpenRoom) {
        needSame(_backend)
        this._actor = "rooms/" + _room.name
        _room._changed = () => {
            if (this._isJoined && !this._events && _room._listeners.size) this._follow(this._turn)
            this._wake()
        }
        this._unlisten = _backend._changes.add(() => this._begin())
        this._begin()
    }

    // Methods for the app

    _publish(topic: string, payload: unknown, account: string): Promise<number> {
        return new Promise((resolve, reject) => {
            if (this._left) return reject(wasLeft())
            if (this._backend._isClosed) return reject(closed())
            const { phase, error } = this._status
            if (phase === "failed") return reject(error)
            if (this._outbox.length >= waitingEvents) return reject(failure("rateLimited", waitingEvents + " events are queued already"))
            const event: Publication = { _topic: topic, _payload: payload, _account: account, _resolve: resolve, _reject: reject }
            this._outbox.push(event)
            this._wake()
            const { timeout = 30_000 } = this._backend._options
            if (!timeout) return
            const timer: any = setTimeout(() => {
                if (event._isSent || !this._outbox.includes(event)) return
                this._remove(event)
                reject(failure("timeout", `the event was not sent within ${timeout} ms`))
            }, timeout)
            // In Node it does not keep the program running.
            timer.unref?.()
        })
    }

    _history(topic?: string | null, after?: number | null, limit?: number | null): Promise<RoomEvent[]> {
        return this._call("history(topic:after:limit:)", [topic, after, limit])
    }

    _leave(): Promise<void> {
        this._left = new Promise((resolve) => (this._didLeave = resolve))
        this._rejectAll(wasLeft())
        if (this._status.phase === "left") this._didLeave()
        // This includes a join in progress and a join without a response: the server may have performed it.
        else if (this._token || this._requestLine) this._begin()
        else this._end()
        return this._left
    }

    private get _status(): RoomStatus {
        return this._room.status.getSnapshot()
    }

    private _rejectAll(error: unknown): void {
        for (const each of this._outbox.splice(0)) each._reject(error)
    }

    /** Rejects waiting events of users who are no longer signed in: events are never published as another user. */
    private _rejectOthers(): void {
        const { _account: account } = this._backend
        for (const each of this._outbox) if (each._account !== account) each._reject(failure("unauthenticated", "another user is signed in"))
        this._outbox = this._outbox.filter((each) => each._account === account)
    }

    // On one connection

    private _call(target: string, args: unknown[]): Promise<any> {
        return this._backend.client.actor(this._actor).call(target, args)
    }

    private _isCurrent(turn: number): boolean {
        return turn === this._turn && this._backend._isLive
    }

    private _setStatus(phase: RoomStatus["phase"], error?: unknown): void {
        const { _missed: missed, _restarts: restarts } = this._cursor
        this._room.status._show({ phase, error, missed, restarts } as RoomStatus)
    }

    private async _begin(): Promise<void> {
        const turn = ++this._turn
        this._isJoined = false
        this._events?.()
        this._events = undefined
        this._wake()
        if (this._status.phase === "left") return
        if (this._backend._isClosed) return this._end(closed())
        this._rejectOthers()
        this._setStatus("joining", this._status.error)
        while (this._isCurrent(turn)) {
            try {
                if (this._left) return await this._leaveNow(turn)
                await this._join(turn)
                await this._talk(turn)
                // The membership was lost while the room was joined.
                if (this._isCurrent(turn) && !this._left && this._failures++) await wait(delayAfter(this._failures))
            } catch (error) {
                if (!this._isCurrent(turn)) return
                const pause = this._failed(error)
                if (pause === undefined) return
                await wait(pause)
            }
        }
    }

    private async _join(turn: number): Promise<void> {
        if (this._isJoined) return
        // A refused presence does not prevent the join.
        const { presence: wanted, _refused: refused } = this._room
        const presence = wanted === refused ? null : wanted
        const shown = copied(presence)
        this._sent = presence
        this._requestLine = this._backend._line
        const { token, session, events } = await this._call(joining, [presence, this._token, this._attempt]).catch((error) => {
            // The join was refused, so there is nothing to leave.
            if (reasonOf(error) || isFinal(error)) this._requestLine = 0
            throw error
        })
        this._requestLine = 0
        this._token = token
        if (session.length <= longestSession) this._sessions.add(session)
        if (this._sessions.size > mostSessions) this._sessions.delete([...this._sessions][0]!)
        // A roster with this membership may have arrived before this response.
        this._showPeers(this._room.peers.getSnapshot())
        this._cursor._joined(events)
        if (!this._isCurrent(turn) || this._left) return
        this._isJoined = true
        this._shown = shown
        this._unfollow()
        this._unfollow = follow(
            this._backend.client.actor(this._actor).state<any>("observeRoster"),
            ({ members = {} }) => this._showMembers(members),
            (error) => this._lost(error)
        )
        if (this._room._listeners.size) this._follow(turn)
        this._setStatus("joined", this._refusal ?? (presence === this._room.presence ? undefined : this._status.error))
    }

    private async _leaveNow(turn: number): Promise<void> {
        try {
            // A join that may have succeeded over another connection is repeated; its response identifies the membership.
            if (this._requestLine && this._requestLine !== this._backend._line) await this._join(turn)
            await this._call("leave(token:)", [this._token])
        } catch (error) {
            // The membership no longer exists, as intended; or it cannot be resumed, and ends with its grace period.
            if (reasonOf(error) === "rateLimited" || !(reasonOf(error) || isFinal(error))) throw error
        }
        if (turn === this._turn) this._end()
    }

    private _end(error?: TrebuchetError): void {
        this._turn++
        this._unfollow()
        this._unlisten()
        this._room.peers._show([])
        this._rejectAll(error)
        this._setStatus("left", error)
        this._didLeave()
    }

    /** Sends presence and events one call at a time, which preserves their order. */
    private async _talk(turn: number): Promise<void> {
        while (this._isCurrent(turn) && this._isJoined && !this._left) {
            const { presence, _refused: refused } = this._room
            // Presence and events alternate, so that neither delays the other.
            if (!isSame(this._shown, presence) && presence !== refused) {
                const shown = copied(presence)
                this._shown = unknown
                this._sent = presence
                // The presence is sent as a whole; the server sends its changes to the other members.
                await this._call("setPresence(_:)", [presence])
                this._shown = shown
                this._setStatus("joined", this._refusal)
            } else if (!this._outbox.length) await new Promise<void>((resolve) => (this._wake = resolve))
            this._rejectOthers()
            const [event] = this._outbox
            if (event && this._isCurrent(turn)) await this._send(event)
            if (this._isJoined && !this._refusal) this._failures = 0
        }
    }

    private async _send(event: Publication): Promise<void> {
        try {
            event._isSent = true
            event._resolve(await this._call("publish(topic:payload:)", [event._topic, event._payload]))
        } catch (error) {
            // The event was not published. It is retried after another join, or after a pause.
            event._isSent = false
            if (/^(notJoined|roomClosed|rateLimited)$/.test(reasonOf(error)!)) throw error
            event._reject(error)
        }
        this._remove(event)
    }

    private _remove(event: Publication): void {
        this._outbox = this._outbox.filter((each) => each !== event)
    }

    /** Returns the delay before the next attempt; undefined if another attempt on this connection would be useless. */
    private _failed(error: any): number | undefined {
        const reason = reasonOf(error)
        const failures = this._failures++
        switch (reason) {
            case "rateLimited":
                return pauseAfter(error, failures)
            case "notSignedIn":
            case "notYours":
                // The sign-in of the connection may take longer than a join. Otherwise the user has changed or signed out, and the client
                // joins as the current user.
                if (reason === "notSignedIn" && this._backend._account) return delayAfter(failures)
                this._attempt = secret()
                this._token = null
                break
            case "unknownToken":
            case "roomClosed":
            case "kicked":
                this._token = null
                break
            case "notJoined":
                break
            default:
                // A presence that the server cannot read, or the coder cannot write, gives an error without a reason.
                if (aboutPresence.test(reason!) || (error.code === "invalidArguments" && this._sent != null)) {
                    this._room._refused = this._sent
                    this._setStatus(this._isJoined ? "joined" : "joining", error)
                    return 0
                }
                if (pauseOf(error, failures, this._backend._account) === undefined) {
                    this._isJoined = false
                    if (this._left) return this._end() as undefined
                    this._room.peers._show([])
                    this._rejectAll(error)
                    this._setStatus("failed", error)
                    return undefined
                }
        }
        this._isJoined = false
        if (reason === "kicked") this._setStatus("joining", error)
        // The first attempt is immediate: the connection was replaced, or the room was just activated again.
        return pauseOf(error, failures) ?? (failures ? delayAfter(failures) : 0)
    }

    /** Handles the end of a stream of the room: this client is no longer a member, or is not authorized. */
    private _lost(error?: TrebuchetError, isOfEvents = false): void {
        if (!this._isJoined) return
        this._isJoined = false
        // The client joins again immediately. When the stream ends again before it has begun, the client shows the error and waits longer
        // each time.
        if (this._refusal) {
            this._failures++
            this._setStatus("joining", error)
        }
        this._refusal = error
        this._isOfEvents = isOfEvents
        this._wake()
    }

    private _begun(isOfEvents: boolean): void {
        const { _refusal: refusal } = this
        if (!refusal || this._isOfEvents !== isOfEvents) return
        this._refusal = undefined
        this._failures = 0
        const { phase, error } = this._status
        this._setStatus(phase, error === refusal ? undefined : error)
    }

    // Members

    private _showMembers(members: Record<string, Peer>): void {
        this._begun(false)
        // Numeric member names are in ascending order.
        this._showPeers(Object.values(members))
    }

    /** Shows the members that are not memberships of this client. */
    private _showPeers(members: readonly Peer[]): void {
        this._room.peers._show(members.filter(({ id }) => !this._sessions.has(id)))
    }

    // Events

    private _follow(turn: number): void {
        this._events?.()
        this._incoming = []
        this._mustCatchUp = true
        const events = this._backend.client.actor(this._actor).events<RoomEvent>("observeEvents")
        const end = events.subscribe(
            (event) => {
                // The room has the omitted events, or reports them as missed.
                if (this._incoming.length >= waitingEvents) {
                    this._incoming = []
                    this._mustCatchUp = true
                }
                this._incoming.push(event)
                this._takeEvents(turn)
            },
            (error) => {
                unwatch()
                this._events = undefined
                if (turn !== this._turn) return
                if (error.code === "overflow") this._follow(turn)
                else this._lost(error, true)
            }
        )
        const unwatch = events.status.subscribe(() => {
            if (events.status.getSnapshot().phase === "live") this._begun(true)
        })
        this._events = () => {
            end()
            unwatch()
        }
        this._takeEvents(turn)
    }

    /** Delivers events in order; missing events are requested first. */
    private async _takeEvents(turn: number): Promise<void> {
        if (this._isTaking) return
        this._isTaking = true
        for (let failures = 0; turn === this._turn && (this._mustCatchUp || this._incoming[0]); ) {
            if (this._mustCatchUp || this._cursor._isBehind(this._incoming[0]!)) {
                // The flag is cleared first: a subscription that begins during this request needs another request, for the events in
                // between.
                this._mustCatchUp = false
                try {
                    const events = await this._history(null, this._cursor._last)
                    if (turn !== this._turn) break
                    for (const event of events) this._take(event)
                    // The waiting events are later than those that the next request returns.
                    if (this._mustCatchUp) continue
                } catch (error) {
                    this._mustCatchUp = true
                    const pause = pauseOf(error, failures++)
                    // The room must be joined again, which calls this function again.
                    if (pause === undefined) this._lost()
                    await wait(pause ?? delayAfter(failures))
                    continue
                }
            }
            const event = this._incoming.shift()
            if (event) this._take(event)
        }
        this._isTaking = false
        if (turn !== this._turn && this._isJoined) this._takeEvents(this._turn)
    }

    private _take(event: RoomEvent): void {
        const missed = this._cursor._missed
        if (!this._cursor._take(event)) return
        if (missed !== this._cursor._missed) this._setStatus(this._status.phase, this._status.error)
        if (!this._sessions.has(event.peer)) this._room._listeners.notify(event)
    }
}
