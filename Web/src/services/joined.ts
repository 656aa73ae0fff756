import type { Backend } from "./backend.js"
import { needSame } from "./build.js"
import { Cursor } from "./cursor.js"
import { follow } from "./followed.js"
import { closed, delayAfter, failure, pauseAfter, reasonOf, wait } from "./refusals.js"
import type { OpenRoom } from "./room.js"
import { secret } from "./secret.js"
import type { TrebuchetError } from "./trebuchet.js"
import type { Peer, RoomEvent, RoomStatus } from "./types.js"
import { copied, isSame } from "./values.js"

/** Events that wait to be published; one more is refused. */
const waitingEvents = 256
/** Reasons that may pass, besides those of all services. */
const passing = /^(roomClosed|roomFull|serverFull|tooManySessions|alreadyJoined|kicked)$/

function pauseOf(error: any, failures: number, isSignedIn?: unknown): number | undefined {
    const reason = reasonOf(error)
    if (!reason || !passing.test(reason)) return pauseAfter(error, failures, isSignedIn)
    return error.data[reason].retryAfterMilliseconds ?? error.retryAfter ?? delayAfter(failures)
}

/** The same call would be answered the same. */
const isFinal = (error: any): boolean => pauseAfter(error, 0) === undefined

const aboutPresence = /TooLarge|tooDeep|invalidValue/

interface Publication {
    readonly _topic: string
    readonly _payload: unknown
    /** Who publishes it; empty for nobody. */
    readonly _account: string
    _resolve(number: number): void
    _reject(error: unknown): void
}

const wasLeft = (): TrebuchetError => failure("cancelled", "the room was left")

const joining = "join(presence:token:attempt:)"

/** What the server is not known to show. */
const unknown = NaN

/** What keeps this client in a room, over all its connections, until it leaves. */
export class JoinedRoom {
    private _actor: string
    private _attempt = secret()
    private _token: string | null = null
    /** Those that it has had, which may be in the roster until their grace is over. */
    private _sessions = new Set<string>()
    private _cursor = new Cursor()
    private _shown: unknown = unknown
    /** What was to be shown last. */
    private _sent: unknown = null
    private _outbox: Publication[] = []
    private _events: (() => void) | undefined
    private _incoming: RoomEvent[] = []
    private _mustCatchUp = false
    private _isTaking = false
    /** Grows with each connection, and when the room is to be joined anew. */
    private _turn = 0
    private _isJoined = false
    /** The connection over which a join was sent that has no answer: it may have made a session. */
    private _asked = 0
    private _failures = 0
    /** The error of a stream that ended while the room was joined, until that stream begins again; and whether it is that of events. */
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

    // What the app does

    _publish(topic: string, payload: unknown, account: string): Promise<number> {
        return new Promise((resolve, reject) => {
            if (this._left) return reject(wasLeft())
            if (this._backend._isClosed) return reject(closed())
            const { phase, error } = this._status
            if (phase === "failed") return reject(error)
            if (this._outbox.length >= waitingEvents) return reject(failure("rateLimited", waitingEvents + " events wait to be published already"))
            this._outbox.push({ _topic: topic, _payload: payload, _account: account, _resolve: resolve, _reject: reject })
            this._wake()
        })
    }

    _history(topic?: string | null, after?: number | null, limit?: number | null): Promise<RoomEvent[]> {
        return this._call("history(topic:after:limit:)", [topic, after, limit])
    }

    _leave(): Promise<void> {
        this._left = new Promise((resolve) => (this._didLeave = resolve))
        this._rejectAll(wasLeft())
        if (this._status.phase === "left") this._didLeave()
        // Also one whose join is under way, or was and had no answer: the server may have it.
        else if (this._token || this._asked) this._begin()
        else this._end()
        return this._left
    }

    private get _status(): RoomStatus {
        return this._room.status.getSnapshot()
    }

    private _rejectAll(error: unknown): void {
        for (const each of this._outbox.splice(0)) each._reject(error)
    }

    /** What somebody has published who is not signed in any more goes out in nobody else's name. */
    private _rejectOthers(): void {
        const { _account: account } = this._backend
        for (const each of this._outbox) if (each._account !== account) each._reject(failure("unauthenticated", "somebody else is signed in"))
        this._outbox = this._outbox.filter((each) => each._account === account)
    }

    // Over one connection

    private _call(target: string, args: unknown[]): Promise<any> {
        return this._backend.client.actor(this._actor).call(target, args)
    }

    private _isCurrent(turn: number): boolean {
        return turn === this._turn && this._backend._isLive
    }

    private _tell(phase: RoomStatus["phase"], error?: unknown): void {
        this._room.status._show({ phase, error, missed: this._cursor._missed } as RoomStatus)
    }

    private async _begin(): Promise<void> {
        const turn = ++this._turn
        this._isJoined = false
        this._events?.()
        this._events = undefined
        this._wake()
        const isOver = this._status.phase === "left"
        if (this._backend._isClosed && !isOver) return this._end(closed())
        if (isOver) return
        this._rejectOthers()
        this._tell("joining", this._status.error)
        while (this._isCurrent(turn)) {
            try {
                if (this._left) return await this._leaveNow(turn)
                await this._join(turn)
                await this._talk(turn)
                // It was lost while it was joined.
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
        // A presence that is refused keeps nobody out.
        const { presence: wanted, _refused: refused } = this._room
        const presence = wanted === refused ? null : wanted
        const shown = copied(presence)
        this._sent = presence
        this._asked = this._backend._line
        const { token, session, events } = await this._call(joining, [presence, this._token, this._attempt]).catch((error) => {
            // It was refused, so there is nothing to leave.
            if (reasonOf(error) || isFinal(error)) this._asked = 0
            throw error
        })
        this._asked = 0
        this._token = token
        this._sessions.add(session)
        this._cursor._joined(events)
        if (!this._isCurrent(turn) || this._left) return
        this._isJoined = true
        this._shown = shown
        this._unfollow()
        this._unfollow = follow(
            this._backend.client.actor(this._actor).state<any>("observeRoster"),
            ({ members = {} }) => this._tellPeers(members),
            (error) => this._lost(error)
        )
        if (this._room._listeners.size) this._follow(turn)
        this._tell("joined", this._refusal ?? (presence === this._room.presence ? undefined : this._status.error))
    }

    private async _leaveNow(turn: number): Promise<void> {
        try {
            // What may have been done over another connection is done again, which tells who one is.
            if (this._asked && this._asked !== this._backend._line) await this._join(turn)
            await this._call("leave(token:)", [this._token])
        } catch (error) {
            // The session is not there any more, which is what was wanted; or it cannot be had again, and ends with its grace.
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
        this._tell("left", error)
        this._didLeave()
    }

    /** One call after the other: that keeps the order. */
    private async _talk(turn: number): Promise<void> {
        while (this._isCurrent(turn) && this._isJoined && !this._left) {
            const { presence, _refused: refused } = this._room
            // In turns: neither holds up the other.
            if (!isSame(this._shown, presence) && presence !== refused) {
                const shown = copied(presence)
                this._shown = unknown
                this._sent = presence
                // As a whole: the server tells the others what has changed in it.
                await this._call("setPresence(_:)", [presence])
                this._shown = shown
                this._tell("joined", this._refusal)
            } else if (!this._outbox.length) await new Promise<void>((resolve) => (this._wake = resolve))
            this._rejectOthers()
            const [event] = this._outbox
            if (event && this._isCurrent(turn)) await this._send(event)
            if (this._isJoined && !this._refusal) this._failures = 0
        }
    }

    private async _send(event: Publication): Promise<void> {
        try {
            event._resolve(await this._call("publish(topic:payload:)", [event._topic, event._payload]))
        } catch (error) {
            // Not done: after joining again, or after a pause.
            if (/^(notJoined|roomClosed|rateLimited)$/.test(reasonOf(error) ?? "")) throw error
            event._reject(error)
        }
        this._outbox = this._outbox.filter((each) => each !== event)
    }

    /** How long to wait before it is tried again; undefined when that would be of no use on this connection. */
    private _failed(error: any): number | undefined {
        const reason = reasonOf(error)
        const failures = this._failures++
        switch (reason) {
            case "rateLimited":
                return pauseAfter(error, failures)
            case "notSignedIn":
            case "notYours":
                // Signing in may take a moment longer than the connection. Else somebody else has signed in, or nobody, and joins as such.
                if (reason === "notSignedIn" && failures < 3) return delayAfter(failures)
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
                // What the server cannot read, or the coder cannot write, has no reason.
                if (aboutPresence.test(reason ?? "") || (error.code === "invalidArguments" && this._sent != null)) {
                    this._room._refused = this._sent
                    this._tell(this._isJoined ? "joined" : "joining", error)
                    return 0
                }
                if (pauseOf(error, failures, this._backend._account) === undefined) {
                    this._isJoined = false
                    if (this._left) return this._end() as undefined
                    this._room.peers._show([])
                    this._rejectAll(error)
                    this._tell("failed", error)
                    return undefined
                }
        }
        this._isJoined = false
        if (reason === "kicked") this._tell("joining", error)
        // The first time at once: the connection was another one, or the room was just made anew.
        return pauseOf(error, failures) ?? (failures ? delayAfter(failures) : 0)
    }

    /** A stream of the room has ended: this client is no member any more, or is not authorized. */
    private _lost(error?: TrebuchetError, isOfEvents = false): void {
        if (!this._isJoined) return
        this._isJoined = false
        // The client joins again at once. When the stream ends again before it has begun, the client shows the error and waits longer each time.
        if (this._refusal) {
            this._failures++
            this._tell("joining", error)
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
        this._tell(phase, error === refusal ? undefined : error)
    }

    // Who is there

    private _tellPeers(members: Record<string, Peer>): void {
        this._begun(false)
        // Numbers as names are in their order.
        this._room.peers._show(Object.values(members).filter(({ id }) => !this._sessions.has(id)))
    }

    // What is published

    private _follow(turn: number): void {
        this._events?.()
        this._incoming = []
        this._mustCatchUp = true
        const events = this._backend.client.actor(this._actor).events<RoomEvent>("observeEvents")
        const end = events.subscribe(
            (event) => {
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

    /** In order; what lies between is asked for before. */
    private async _takeEvents(turn: number): Promise<void> {
        if (this._isTaking) return
        this._isTaking = true
        for (let failures = 0; turn === this._turn && (this._mustCatchUp || this._incoming[0]); ) {
            if (this._mustCatchUp || this._cursor._isBehind(this._incoming[0]!)) {
                // Before: who follows anew while this is answered has to ask once more, for what lies between.
                this._mustCatchUp = false
                try {
                    const events = await this._history(null, this._cursor._last)
                    if (turn !== this._turn) break
                    for (const event of events) this._take(event)
                } catch (error) {
                    this._mustCatchUp = true
                    const pause = pauseOf(error, failures++)
                    // The room is to be joined anew, which comes back to here.
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
        if (missed !== this._cursor._missed) this._tell(this._status.phase, this._status.error)
        if (!this._sessions.has(event.peer)) this._room._listeners.tell(event)
    }
}
