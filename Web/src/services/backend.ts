import { Listeners } from "../store.js"
import { Session } from "./auth.js"
import { LiveCollection } from "./collection.js"
import { pendingStore } from "./kept.js"
import { failure } from "./refusals.js"
import { JoinedRoom } from "./room.js"
import { Client, connect } from "./trebuchet.js"
import type { Auth, PendingStore, Services, ServicesOptions } from "./types.js"

/** Milliseconds between two looks for writes of tabs that are gone. */
const adoptEvery = 30_000

export const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** 24 random bytes as text: nobody guesses them. */
export const secret = (): string => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(24))))

/** A server of the services: one connection, who is signed in there, and what uses it. */
export class Backend implements Services {
    readonly client: Client
    readonly auth: Auth
    /** Counts connections: what was opened over another one is not open any more. */
    _line = 0
    _isLive = false
    _isClosed = false
    /** Called when a connection is there, and when it is lost. */
    readonly _changes = new Listeners()
    readonly _store: PendingStore | null
    private _session: Session
    private _rooms = new Map<string, JoinedRoom>()
    private _collections = new Map<string, LiveCollection>()
    private _adopting: Promise<void> | undefined
    private _timer: any

    constructor(private _url: string, readonly _options: ServicesOptions) {
        const key = _options.storageKey ?? "trebuchet:" + _url
        this._store = _options.pending === undefined ? pendingStore(key) ?? null : _options.pending
        this._session = new Session(this, _options, key)
        // It has the methods that it makes of tables.
        this.auth = this._session as unknown as Auth
        this.client = connect(_url, { ..._options, token: this._session._token })
        this.client.status.subscribe(() => {
            const isLive = this.client.status.getSnapshot().phase === "live"
            if (isLive === this._isLive) return
            this._isLive = isLive
            if (isLive) {
                this._line++
                this._session._connected()
                this._adopt()
            }
            this._changes._tell()
        })
        const look = (): void => {
            this._timer = setTimeout(look, adoptEvery)
            // It keeps no process of Node's running.
            this._timer.unref?.()
            if (this._isLive) this._adopt()
        }
        look()
    }

    get _account(): string {
        return this._session._account
    }

    room(name: string, presence?: any): any {
        const known = this._rooms.get(name)
        if (known && presence !== undefined) known.set(presence)
        const room = known ?? new JoinedRoom(this, name, presence ?? null, () => this._rooms.delete(name))
        this._rooms.set(name, room)
        return room
    }

    rooms(type: string, after: string | null = null, limit = 100): Promise<any> {
        return this.client.actor("room-lists/" + type).call("list(after:limit:)", [after, limit])
    }

    collection(name: string): any {
        const collection = this._collections.get(name) ?? new LiveCollection(this, name)
        this._collections.set(name, collection)
        return collection
    }

    close(): void {
        if (this._isClosed) return
        this._isClosed = true
        clearTimeout(this._timer)
        this._session._close()
        for (const client of [this.client, ...this._others]) client.close()
        for (const collection of this._collections.values()) collection._close()
        this._store?.close()
        this._changes._tell()
    }

    // For the session

    _anonymous(): Client {
        const client = connect(this._url, { ...this._options })
        this._others.add(client)
        return client
    }

    _leave(client: Client): void {
        client.close()
        this._others.delete(client)
    }

    async _sent(isLeaving = false): Promise<void> {
        const isWaiting = (): boolean => [...this._collections.values()].some(({ _isWaiting }) => _isWaiting)
        // So long over a connection, and for one.
        for (let [left, patience] = [30_000, 10_000]; left > 0 && (isWaiting() || (isLeaving && !this._isLive)); ) {
            if (this._isLive) left -= 20
            else if (this._isClosed || (patience -= 20) < 0) throw failure("unavailable", "there is no connection")
            await wait(20)
        }
    }

    _accountChanged(before: string): void {
        for (const collection of this._collections.values()) collection._accountChanged(before)
    }

    /** Writes of tabs that are gone, and of those before a reload, are sent here. */
    private _adopt(): void {
        this._session._keepAgain()
        const store = this._store
        if (!store || this._adopting) return
        const adopt = async (): Promise<void> => {
            for (const secret of new Set((await store.all()).map(({ secret }) => secret))) {
                if (this._mine.has(secret) || !(await store.claim(secret))) continue
                this._mine.add(secret)
                // Read again: their tab may have sent some in the meantime.
                const left = (await store.all()).filter((write) => write.secret === secret)
                if (left[0]) this.collection(left[0].collection)._adopt(left)
            }
        }
        this._adopting = adopt()
            .catch(() => {})
            .finally(() => (this._adopting = undefined))
    }

    /** Clients for a moment. */
    private _others = new Set<Client>()
    /** Secrets of this tab, those of others that are gone among them. */
    readonly _mine = new Set<string>()
}
