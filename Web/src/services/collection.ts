import type { Backend } from "./backend.js"
import { Command, commands, idOf } from "./commands.js"
import { loadWrites } from "./loaded.js"
import { PendingWrite, PendingWrites } from "./pending.js"
import { LiveQuery } from "./query.js"
import { WireQuery, wireQuery } from "./queries.js"
import { closed, failure, needJSON, wait } from "./refusals.js"
import { secret } from "./secret.js"
import { type Client, Listeners, report, type TrebuchetError } from "./trebuchet.js"
import type { KeptWrite, Page, Pages, PendingStore, Query, QueryOptions, RefusedWrite, Writes } from "./types.js"

/** Bytes of a write, about: a message that is larger than the server takes would end the connection. */
const largestWrite = 256 << 10

/** A collection as a client has it: the writes that wait, by whose they are, and the results that show it. */
export class LiveCollection {
    /** Queries that somebody observes. */
    readonly _open = new Set<LiveQuery>()
    /** Those that anybody holds: queries by what they ask for, and each of those with pages. */
    private _queries = new Map<unknown, WeakRef<LiveQuery>>()
    private _forgotten = new FinalizationRegistry<unknown>((key) => {
        if (!this._queries.get(key)?.deref()) this._queries.delete(key)
    })
    /** Who is told of refused writes. */
    private _refusals = new Listeners<[RefusedWrite]>()
    private _writes = new Map<string, PendingWrites>()
    /** Accounts whose writes are being sent. */
    private _sending = new Set<string>()
    /** That something cannot be kept. */
    private _wasTold = false

    constructor(readonly _backend: Backend, readonly _name: string) {
        Object.assign(this, commands((command) => this._write([command])))
        const { refused } = _backend._options
        if (refused) this._refusals.add(refused)
        _backend._changes.add(() => this._sendAll())
    }

    // What is read

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
        return this._call("get(_:)", [wireQuery(options)], 30_000)
    }

    /** Without a timeout it ends with its answer, or with the connection. */
    _call(target: string, args: unknown[], timeout = 0, client: Client = this._backend.client): Promise<any> {
        return client.actor("collections/" + this._name).call(target, args, { timeout })
    }

    /** What waits, or is not seen in all results, of who is signed in. */
    get _pending(): PendingWrite[] {
        return this._writes.get(this._backend._account)?._all ?? []
    }

    _show(): void {
        for (const query of this._open) query._show()
    }

    /** Forgets the writes that all results show. */
    _forgetSeen(): void {
        const seen = Math.min(...[...this._open].map(({ _seen }) => _seen))
        for (const [account, writes] of this._writes) writes._forget(account === this._backend._account ? seen : Infinity)
    }

    // What is written

    transaction(write: (transaction: Writes<void>) => void): Promise<void> {
        const made: Command[] = []
        write(commands((command) => void made.push(command)))
        return this._write(made)
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
            if (text.length > largestWrite) throw failure("invalidArguments", "a write has 256 KiB at most")
            if (writes._waiting.length >= pendingWrites) throw failure("rateLimited", pendingWrites + " writes wait (pendingWrites)")
            // A copy: what the app does with its own afterwards is another thing.
            const write = writes._add(json.parse(text) as Command[], Date.now(), account)
            if (store) this._keep(store, writes, write, { ...write, collection: this._name, ...(options.json && { commands: [], json: text }) })
            write._end = (error) => (error ? reject(error) : resolve())
        })
        done.catch(() => {})
        this._changed()
        return done
    }

    /**
     * It is not sent before it is kept: else one that was sent, and is gone with the tab, could not be told from one that never was.
     * Where nothing can be kept it is sent all the same while there is a connection, which is told once.
     */
    private async _keep(store: PendingStore, writes: PendingWrites, write: PendingWrite, kept: KeptWrite): Promise<void> {
        write.isBeingKept = true
        try {
            // Before the first is kept: nobody else sends it then.
            await (writes._claimed ??= store.claim(writes._secret))
            await store.add(kept)
        } catch (error) {
            writes._claimed = undefined
            const problem = failure("unavailable", "it cannot be kept: " + error)
            if (!this._isTurnOf(kept.account)) {
                writes._remove(write)
                this._refused(write, problem)
            } else if (!this._wasTold) {
                this._wasTold = true
                report(problem)
            }
        }
        write.isBeingKept = false
        this._changed()
    }

    private _changed(): void {
        this._show()
        this._sendAll()
    }

    /** Takes over what another tab, that is gone, has left. */
    _adopt(account: string, left: PendingWrite[]): void {
        const { _all: all, _secret: own } = this._of(account)
        // They were made before those of this page, and behind what was taken over earlier.
        all.splice(all.findIndex(({ secret }) => secret === own) >>> 0, 0, ...left)
        this._changed()
    }

    _refused(write: PendingWrite, error: TrebuchetError, index = 0): void {
        const { commands, _end: end } = write
        end?.(error)
        // What the app's own throws stops nobody.
        this._refusals.tell({ collection: this._name, id: commands[index] && idOf(commands[index]!), commands, error })
    }

    /** What waits of the account of before waits until it is signed in again, and nobody for it; what nobody wrote is sent all the same. */
    _accountChanged(before: string): void {
        if (before) this._giveUp(before, failure("unauthenticated", "signed out"))
        this._forgetSeen()
        // Those too that nobody observes: what somebody else has read is shown to nobody.
        for (const query of this._queries.values()) query.deref()?._show()
        this._sendAll()
    }

    _close(): void {
        for (const account of this._writes.keys()) this._giveUp(account, closed())
    }

    private _giveUp(account: string, error: TrebuchetError): void {
        for (const write of this._of(account)._waiting) {
            write._end?.(error)
            write._end = undefined
        }
    }

    // Sending

    private _sendAll(): void {
        for (const [account, writes] of this._writes) {
            const first = writes._waiting[0]
            if (!first || first.isBeingKept || this._sending.has(account) || !this._isTurnOf(account)) continue
            this._sending.add(account)
            loadWrites()
                .then(({ send }) => send(this._backend, this, account, writes))
                // Not again and again without a pause.
                .catch(() => wait(1000))
                .then(() => {
                    this._sending.delete(account)
                    // There may be more by now, or it may be the turn of this account again.
                    this._sendAll()
                })
        }
    }

    /** Writes are sent as who made them, those of nobody over a connection of nobody. */
    _isTurnOf(account: string): boolean {
        return this._backend._isLive && (!account || account === this._backend._account)
    }
}
