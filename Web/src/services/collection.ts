import type { Backend } from "./backend.js"
import { Command, commands, idOf } from "./commands.js"
import { loadWrites } from "./lazy-module.js"
import { PendingWrite, PendingWrites } from "./pending-writes.js"
import { LiveQuery } from "./query.js"
import { WireQuery, wireQuery } from "./queries.js"
import { closed, failure, needJSON, wait } from "./rejections.js"
import { secret } from "./random-token.js"
import { type Client, Listeners, report, type TrebuchetError } from "./trebuchet.js"
import type { PersistedWrite, Page, Pages, PendingStore, Query, QueryOptions, RefusedWrite, Writes } from "./types.js"

/** The maximum size of a write, approximately, in bytes: a message larger than the server's limit would end the connection. */
const largestWrite = 256 << 10

/** The client's view of a collection: the waiting writes by account, and the query results that show them. */
export class LiveCollection {
    /** The observed queries. */
    readonly _open = new Set<LiveQuery>()
    /** All referenced queries: plain queries by their JSON, paged queries by identity. */
    private _queries = new Map<unknown, WeakRef<LiveQuery>>()
    private _forgotten = new FinalizationRegistry<unknown>((key) => {
        if (!this._queries.get(key)?.deref()) this._queries.delete(key)
    })
    /** The listeners for refused writes. */
    private _refusals = new Listeners<[RefusedWrite]>()
    private _writes = new Map<string, PendingWrites>()
    /** The accounts whose writes are being sent. */
    private _sending = new Set<string>()
    /** True if the failure to persist a write was reported. */
    private _isReported = false

    constructor(readonly _backend: Backend, readonly _name: string) {
        Object.assign(this, commands((command) => this._write([command])))
        const { refused } = _backend._options
        if (refused) this._refusals.add(refused)
        _backend._changes.add(() => this._sendAll())
    }

    // Reads

    query(options: QueryOptions = {}): Query<any> {
        const { _json: json } = this._backend
        const key = json.stringify(this._wire(options))
        return this._live(json.parse(key) as WireQuery, key)
    }

    pages(options: QueryOptions = {}): Pages<any> {
        const { _json: json } = this._backend
        const wire = json.parse(json.stringify(this._wire({ limit: 20, ...options }))) as WireQuery
        return this._live(wire, wire)
    }

    private _wire(options: QueryOptions): WireQuery {
        const wire = wireQuery(options)
        needJSON("query", wire, this._backend._json)
        return wire
    }

    private _live(wire: WireQuery, key: unknown): LiveQuery {
        let query = this._queries.get(key)?.deref()
        if (!query) {
            query = new LiveQuery(this, wire)
            this._queries.set(key, new WeakRef(query))
            this._forgotten.register(query, key)
        }
        return query
    }

    get(options: QueryOptions = {}): Promise<Page<any>> {
        return this._call("get(_:)", [wireQuery(options)], this._backend._options.timeout ?? 30_000)
    }

    /** Calls a method of the collection. Without a timeout the call ends with its response, or with the connection. */
    _call(target: string, args: unknown[], timeout = 0, client: Client = this._backend.client): Promise<any> {
        return client.actor("collections/" + this._name).call(target, args, { timeout })
    }

    /** The writes of the current user that wait or that some results do not show yet. */
    get _pending(): PendingWrite[] {
        return this._writes.get(this._backend._account)?._all ?? []
    }

    _show(): void {
        for (const query of this._open) query._show()
    }

    /** Removes the writes that all results show. */
    _forgetSeen(): void {
        const seen = Math.min(...[...this._open].map(({ _seen }) => _seen))
        for (const [account, writes] of this._writes) writes._forget(account === this._backend._account ? seen : Infinity)
    }

    // Writes

    transaction(write: (transaction: Writes<void>) => unknown): Promise<void> {
        const made: Command[] = []
        let isOver: unknown
        const needSynchronous = (): void => {
            if (isOver) throw failure("invalidArguments", "the function of a transaction must be synchronous")
        }
        const transaction = commands((command) => {
            needSynchronous()
            made.push(command)
        })
        try {
            const result: any = write(transaction)
            isOver = result?.then
            // Its later commands are errors too, which nobody awaits.
            if (isOver) result.then(undefined, () => {})
            needSynchronous()
        } catch (error) {
            return Promise.reject(error)
        }
        isOver = true
        return made[0] ? this._write(made) : Promise.resolve()
    }

    private _of(account: string): PendingWrites {
        let writes = this._writes.get(account)
        if (!writes) {
            writes = new PendingWrites(secret())
            this._backend._mine.add(writes._secret)
            this._writes.set(account, writes)
        }
        return writes
    }

    private _write(commands: Command[]): Promise<void> {
        const { _account: account, _store: store, _options: options, _json: json, _isClosed: isClosed } = this._backend
        const writes = this._of(account)
        const { pendingWrites = 1000 } = options
        const done = new Promise<void>((resolve, reject) => {
            if (isClosed) throw closed()
            needJSON("commands", commands, json)
            let text: string
            try {
                text = json.stringify(commands)
            } catch (error) {
                throw failure("invalidArguments", String(error))
            }
            if (!commands.every(idOf)) throw failure("invalidArguments", "the id is missing")
            if (text.length > largestWrite) throw failure("invalidArguments", "a write is limited to 256 KiB")
            if (writes._waiting.length >= pendingWrites) throw failure("rateLimited", pendingWrites + " writes are pending (pendingWrites)")
            // The write is a copy, so that the app can change its own objects.
            const write = writes._add(json.parse(text) as Command[], Date.now(), account)
            if (store) this._persist(store, writes, write, { ...write, collection: this._name, ...(options.json && { commands: [], json: text }) })
            write._end = (error) => (error ? reject(error) : resolve())
        })
        done.catch(() => {})
        this._changed()
        return done
    }

    /**
     * Persists a write before it is sent. Otherwise a write that was sent and lost with the tab would look like one that was never sent. If
     * it cannot be persisted, the write is still sent while there is a connection, and the failure is reported once.
     */
    private async _persist(store: PendingStore, writes: PendingWrites, write: PendingWrite, persisted: PersistedWrite): Promise<void> {
        write.isBeingStored = true
        try {
            // The claim precedes the first persisted write, so that no other tab sends it.
            await (writes._claimed ??= store.claim(writes._secret))
            await store.add(persisted)
            write.isStored = true
        } catch (error) {
            writes._claimed = undefined
            const problem = failure("unavailable", "the write cannot be persisted: " + error)
            if (!this._isTurnOf(persisted.account)) {
                writes._remove(write)
                this._refused(write, problem)
            } else if (!this._isReported) {
                this._isReported = true
                report(problem)
            }
        }
        write.isBeingStored = false
        if (this._backend._isClosed) this._close()
        this._changed()
    }

    private _changed(): void {
        this._show()
        this._sendAll()
    }

    /** Takes over the writes of a closed tab. */
    _adopt(account: string, left: PendingWrite[]): void {
        const { _all: all, _secret: own } = this._of(account)
        // These writes precede the writes of this page, and follow those adopted earlier.
        all.splice(all.findIndex(({ secret }) => secret === own) >>> 0, 0, ...left)
        this._changed()
    }

    _refused(write: PendingWrite, error: TrebuchetError, index = 0): void {
        const { commands, _end: end } = write
        if (commands[1]) Object.assign(error, { index })
        end?.(error)
        // An error of one listener does not affect the others.
        this._refusals.notify({ collection: this._name, id: commands[index] && idOf(commands[index]!), commands, error })
    }

    /**
     * Suspends the waiting writes of the previous account until it is signed in again; their promises reject now. Anonymous writes are
     * still sent.
     */
    _accountChanged(before: string): void {
        if (before) this._giveUp(before, () => failure("unauthenticated", "signed out"))
        this._forgetSeen()
        // This includes unobserved queries: results that a previous user has read are hidden.
        for (const query of this._queries.values()) query.deref()?._show()
        this._sendAll()
    }

    _close(): void {
        for (const account of this._writes.keys()) {
            this._giveUp(account, ({ isStored, isBeingStored, wasSent }) =>
                isBeingStored ? undefined
                : isStored ? failure("persistedForLater", "the write is stored, and is sent when the services are created again")
                : wasSent ? failure("unknownOutcome", "the services were closed before the response")
                : closed())
        }
    }

    /** Rejects the promises of waiting writes, except those without an error. */
    private _giveUp(account: string, errorOf: (write: PendingWrite) => TrebuchetError | undefined): void {
        for (const write of this._of(account)._waiting) {
            const error = errorOf(write)
            if (!error) continue
            write._end?.(error)
            write._end = undefined
        }
    }

    // Sending

    private _sendAll(): void {
        for (const [account, writes] of this._writes) {
            const first = writes._waiting[0]
            if (!first || first.isBeingStored || this._sending.has(account) || !this._isTurnOf(account)) continue
            this._sending.add(account)
            loadWrites()
                .then(({ send }) => send(this._backend, this, account, writes))
                // The pause prevents a busy retry loop.
                .catch(() => wait(1000))
                .then(() => {
                    this._sending.delete(account)
                    // There may be more writes now, or the account may be permitted to send again.
                    this._sendAll()
                })
        }
    }

    /**
     * Returns true if writes of the account can be sent now. Writes are sent as the user who made them; anonymous writes use an anonymous
     * connection.
     */
    _isTurnOf(account: string): boolean {
        return this._backend._isLive && (!account || account === this._backend._account)
    }
}
