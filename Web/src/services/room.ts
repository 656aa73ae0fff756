import { Listeners } from "../store.js"
import { Backend, secret, wait } from "./backend.js"
import { Cursor } from "./cursor.js"
import { Followed } from "./followed.js"
import { delayAfter, failure, pauseAfter, reasonOf } from "./refusals.js"
import { Shown } from "./shown.js"
import type { TrebuchetError } from "./trebuchet.js"
import type { Peer, Room, RoomEvent, RoomStatus } from "./types.js"
import { copied, isSame, merged } from "./values.js"

/** Events that wait to be published; one more is refused. */
const waitingEvents = 256
const aboutPresence = /TooLarge|tooDeep|invalidValue/

interface Publication {
    readonly _topic: string
    readonly _payload: unknown
    _resolve(number: number): void
    _reject(error: unknown): void
}

const closed = (): TrebuchetError => failure("unavailable", "the services were closed")
const wasLeft = (): TrebuchetError => failure("cancelled", "the room was left")

const joining = "join(presence:token:attempt:)"

/** What the server is not known to show. */
const unknown = NaN

/** A room that this client is in, over all its connections, until it leaves. */
export class JoinedRoom implements Room<any> {
    readonly peers = new Shown<readonly Peer[]>([])
    readonly status = new Shown<RoomStatus>({ phase: "joining", missed: 0 })
    private _actor: string
    private _attempt = secret()
    private _token: string | null = null
    /** Those that it has had, which may be in the roster until their grace is over. */
    private _sessions = new Set<string>()
    private _cursor = new Cursor()
    private _shown: unknown = unknown
    private _refused: unknown = unknown
    private _outbox: Publication[] = []
    private _listeners = new Listeners<[RoomEvent]>()
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
    private _left: Promise<void> | undefined
    private _didLeave: () => void = () => {}
    private _wake: () => void = () => {}
    private _roster: Followed<any>
    private _unlisten: () => void

    presence: any

    constructor(private _backend: Backend, readonly name: string, presence: any, private _forget: () => void) {
        this.presence = copied(presence)
        this._actor = "rooms/" + name
        this._roster = new Followed<any>(
            _backend.client.actor(this._actor).state("observeRoster"),
            ({ members = {} }) => this._tellPeers(members),
            () => this._lost()
        )
        this._unlisten = _backend._changes._add(() => this._begin())
        this._begin()
    }

    // What the app does

    set(presence: any): void {
        // What was refused is tried once more when it is to be shown again.
        this._refused = unknown
        // A copy: what the app changes in its own is shown when it is set.
        this.presence = copied(presence)
        this._wake()
    }

    patch(changes: object): void {
        this.set(merged(this.presence, changes))
    }

    publish(topic: string, payload: unknown): Promise<number> {
        return new Promise((resolve, reject) => {
            if (this._left) return reject(wasLeft())
            if (this._backend._isClosed) return reject(closed())
            if (this._outbox.length >= waitingEvents) return reject(failure("rateLimited", waitingEvents + " events wait to be published already"))
            this._outbox.push({ _topic: topic, _payload: payload, _resolve: resolve, _reject: reject })
            this._wake()
        })
    }

    subscribe(topic: string | null, listener: (event: RoomEvent) => void): () => void {
        const end = this._listeners._add((event) => {
            if (topic === null || event.topic === topic) listener(event)
        })
        if (this._isJoined && !this._events) this._follow(this._turn)
        return end
    }

    history(topic?: string | null, after?: number | null, limit?: number | null): Promise<RoomEvent[]> {
        return this._call("history(topic:after:limit:)", [topic, after, limit])
    }

    leave(): Promise<void> {
        if (this._left) return this._left
        this._left = new Promise((resolve) => (this._didLeave = resolve))
        this._forget()
        this._rejectAll(wasLeft())
        if (this.status.getSnapshot().phase === "left") this._didLeave()
        // Also one whose join is under way, or was and had no answer: the server may have it.
        else if (this._token || this._asked) this._begin()
        else this._end()
        return this._left
    }

    private _rejectAll(error: unknown): void {
        for (const each of this._outbox.splice(0)) each._reject(error)
    }

    // Over one connection

    private _call(target: string, args: unknown[]): Promise<any> {
        return this._backend.client.actor(this._actor).call(target, args)
    }

    private _isCurrent(turn: number): boolean {
        return turn === this._turn && this._backend._isLive
    }

    private _tell(phase: RoomStatus["phase"], error?: unknown): void {
        this.status._show({ phase, error, missed: this._cursor._missed } as RoomStatus)
    }

    private async _begin(): Promise<void> {
        const turn = ++this._turn
        this._isJoined = false
        this._events?.()
        this._events = undefined
        this._wake()
        const isOver = this.status.getSnapshot().phase === "left"
        if (this._backend._isClosed && !isOver) return this._end(closed())
        if (isOver) return
        this._tell("joining", this.status.getSnapshot().error)
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
        const presence = this.presence === this._refused ? null : this.presence
        const shown = copied(presence)
        this._asked = this._backend._line
        const { token, session, events } = await this._call(joining, [presence, this._token, this._attempt]).catch((error) => {
            // It was refused, so there is nothing to leave.
            if (reasonOf(error)) this._asked = 0
            throw error
        })
        this._asked = 0
        this._token = token
        this._sessions.add(session)
        this._cursor._joined(events)
        if (!this._isCurrent(turn) || this._left) return
        this._isJoined = true
        this._shown = shown
        this._roster._begin()
        if (this._listeners._count) this._follow(turn)
        this._tell("joined", presence === this.presence ? undefined : this.status.getSnapshot().error)
    }

    private async _leaveNow(turn: number): Promise<void> {
        try {
            // What may have been done over another connection is done again, which tells who one is.
            if (this._asked && this._asked !== this._backend._line) await this._join(turn)
            await this._call("leave(token:)", [this._token])
        } catch (error) {
            // The session is not there any more, which is what was wanted; or it cannot be had again, and ends with its grace.
            if ((reasonOf(error) ?? "rateLimited") === "rateLimited") throw error
        }
        if (turn === this._turn) this._end()
    }

    private _end(error?: TrebuchetError): void {
        this._turn++
        this._roster._end()
        this._unlisten()
        this.peers._show([])
        this._rejectAll(error)
        this._tell("left", error)
        this._didLeave()
    }

    /** One call after the other: that keeps the order. */
    private async _talk(turn: number): Promise<void> {
        while (this._isCurrent(turn) && this._isJoined && !this._left) {
            const { presence, _outbox: outbox } = this
            // In turns: neither holds up the other.
            if (!isSame(this._shown, presence) && presence !== this._refused) {
                const shown = copied(presence)
                this._shown = unknown
                // As a whole: the server tells the others what has changed in it.
                await this._call("setPresence(_:)", [presence])
                this._shown = shown
                this._tell("joined")
            } else if (!outbox.length) await new Promise<void>((resolve) => (this._wake = resolve))
            if (outbox[0] && this._isCurrent(turn)) await this._publish(outbox[0])
            if (this._isJoined) this._failures = 0
        }
    }

    private async _publish(event: Publication): Promise<void> {
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
                if (aboutPresence.test(reason ?? "")) {
                    this._refused = this.presence
                    this._tell("joining", error)
                    return 0
                }
                if (pauseAfter(error, failures, this._backend._account) === undefined) {
                    this._isJoined = false
                    this.peers._show([])
                    this._rejectAll(error)
                    this._tell("failed", error)
                    return undefined
                }
        }
        this._isJoined = false
        if (reason === "kicked") this._tell("joining", error)
        // The first time at once: the connection was another one, or the room was just made anew.
        return pauseAfter(error, failures) ?? (failures ? delayAfter(failures) : 0)
    }

    /** A stream of the room has ended, so this client is not in it any more. */
    private _lost(): void {
        this._isJoined = false
        this._wake()
    }

    // Who is there

    private _tellPeers(members: Record<string, Peer>): void {
        // Numbers as names are in their order.
        this.peers._show(Object.values(members).filter(({ id }) => !this._sessions.has(id)))
    }

    // What is published

    private _follow(turn: number): void {
        this._events?.()
        this._incoming = []
        this._mustCatchUp = true
        const events = this._backend.client.actor(this._actor).events<RoomEvent>("observeEvents")
        this._events = events.subscribe(
            (event) => {
                this._incoming.push(event)
                this._takeEvents(turn)
            },
            (error) => {
                this._events = undefined
                if (turn !== this._turn) return
                if (error.code === "overflow") this._follow(turn)
                else this._lost()
            }
        )
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
                    const events = await this.history(null, this._cursor._last)
                    if (turn !== this._turn) break
                    for (const event of events) this._take(event)
                } catch (error) {
                    this._mustCatchUp = true
                    const pause = pauseAfter(error, failures++)
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
        if (missed !== this._cursor._missed) this._tell(this.status.getSnapshot().phase, this.status.getSnapshot().error)
        if (!this._sessions.has(event.peer)) this._listeners._tell(event)
    }
}
