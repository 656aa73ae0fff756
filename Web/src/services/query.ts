import type { Backend } from "./backend.js"
import type { LiveCollection } from "./collection.js"
import { overlay, Uncertain, WireResult } from "./overlay.js"
import { isWaiting } from "./pending-writes.js"
import { ResultPosition } from "./result-position.js"
import type { WireQuery } from "./queries.js"
import { delayAfter, pauseAfter, wait } from "./rejections.js"
import { follow } from "./observed-query.js"
import { DisplayedValue } from "./displayed-value.js"
import type { Document, Pages, QueryStatus } from "./types.js"
import { Listeners, type State, type TrebuchetError } from "./trebuchet.js"
import { isSame } from "./values.js"

/** The milliseconds that an unobserved query stays open, so that a recreated view can reuse it. */
const lingering = 100

/** The maximum number of documents in one result. */
const largestLimit = 10_000

/** Follows the result of a query, and shows it with the writes that it does not include yet. */
export class LiveQuery implements Pages<any> {
    private _listeners = new Listeners()
    private _items: readonly any[] | undefined
    private _shown = new Map<string, Document>()
    private _result: WireResult | undefined
    private _position = new ResultPosition()
    private _uncertain = new Uncertain()
    private _error: TrebuchetError | undefined
    /**
     * The connection that the query is open on; 0 if it is not open. `_number` identifies the query in write responses on that connection.
     */
    private _line = 0
    /** The connection over which the query was last requested. */
    private _requestLine = 0
    private _number: number | undefined
    private _view: string | undefined
    private _state: State<WireResult> | undefined
    private _unfollow: () => void = () => {}
    /** A counter that increases with each reason to check the query; operations of an older count are abandoned. */
    private _turn = 0
    private _failures = 0
    private _end: (() => void) | undefined
    private _timer: any
    /** The account whose result is shown. */
    private _account: string
    readonly status = new DisplayedValue<QueryStatus>({ phase: "waiting", hasMore: false, pending: 0 })
    private _page: number
    private _backend: Backend

    constructor(private _collection: LiveCollection, private _query: WireQuery) {
        this._backend = _collection._backend
        this._account = this._backend._account
        this._page = _query.limit!
    }

    more(): void {
        const { _result: result, _query: query } = this
        const { limit = 0 } = query
        if (!result?.hasMore || result.documents.length < limit || limit >= largestLimit) return
        this._close()
        this._query = { ...query, limit: Math.min(limit + this._page, largestLimit) }
        this._look()
    }

    getSnapshot = (): readonly any[] | undefined => (this._isOthers ? undefined : this._items)

    subscribe = (listener: () => void): (() => void) => {
        const end = this._listeners.add(listener)
        clearTimeout(this._timer)
        if (!this._end) this._start()
        return () => {
            end()
            clearTimeout(this._timer)
            if (!this._listeners.size) this._timer = setTimeout(() => this._stop(), lingering)
        }
    }

    document(id: string | number): Document | undefined {
        return this._isOthers ? undefined : this._shown.get(String(id))
    }

    /** True if the result belongs to a previous user. Such a result is hidden, even if it was not updated since. */
    private get _isOthers(): boolean {
        return !!this._account && this._account !== this._backend._account
    }

    /** True if the query is open on the current connection. */
    private get _isOpen(): boolean {
        return this._line === this._backend._line
    }

    /** The last write of the server that the query shows. */
    get _seen(): number {
        return this._error && !this._result ? Infinity : this._position._seen
    }

    /** Handles the latest write response; `shown` has, by query number, the revisions of the results that include the writes. */
    _applyPositions(shown: Record<string, number>, through: number): void {
        const mine = this._isOpen ? shown[this._number!] : undefined
        if (mine !== undefined) this._position._confirm(mine, through)
    }

    // Following

    private _start(): void {
        const { _collection: collection } = this
        collection._open.add(this)
        this._end = this._backend._changes.add(() => this._look())
        this._look()
    }

    private _stop(): void {
        const { _collection: collection } = this
        this._turn++
        this._end?.()
        this._end = undefined
        collection._open.delete(this)
        this._unfollow()
        this._view = undefined
        this._close()
        collection._forgetSeen()
        this._show()
    }

    private _close(): void {
        const { _collection: collection } = this
        // This includes a query that is being opened: calls keep their order.
        if (this._requestLine && this._requestLine === this._backend._line) collection._call("close(_:)", [this._query]).catch(() => {})
        this._requestLine = this._line = 0
    }

    /** Opens the query on the current connection, unless it is open. */
    private async _look(): Promise<void> {
        const { _backend: backend } = this
        const turn = ++this._turn
        this._show()
        while (turn === this._turn && backend._isLive && !this._isOpen) {
            const line = (this._requestLine = backend._line)
            let pause
            try {
                const ticket = await this._collection._call("open(_:)", [this._query])
                if (turn === this._turn) this._opened(line, ticket)
                return
            } catch (error: any) {
                if (turn !== this._turn) return
                pause = pauseAfter(error, this._failures++, backend._account)
                if (pause === undefined) return this._fail(error)
            }
            await wait(pause)
        }
    }

    private _opened(line: number, { view, number, shown, revision }: any): void {
        this._line = line
        this._number = number
        if (view !== this._view) {
            this._position._begin()
            this._view = view
            this._state = this._backend.client.actor(view).state("observeResult")
        }
        this._position._confirm(shown, revision)
        this._unfollow()
        this._unfollow = follow(this._state!, (result) => this._receiveResult(result), (error) => this._lost(error), () => this._changed())
        this._collection._forgetSeen()
        this._show()
    }

    private _receiveResult(result: WireResult): void {
        if (result === this._result) return
        const { _collection: collection } = this
        this._isShown()
        this._uncertain._keep(this._result, this._position._seen, collection._pending)
        this._result = result
        this._position._shows(result.revision)
        collection._forgetSeen()
        collection._show()
    }

    /**
     * Reopens the query immediately after its view has ended or its permissions have changed. When the view is refused again before a
     * result has arrived, the query shows the error and waits longer each time.
     */
    private async _lost(error: TrebuchetError): Promise<void> {
        // Before the query is open on the connection, its opening restarts the stream.
        if (!this._isOpen) return
        const turn = ++this._turn
        this._line = 0
        const failures = this._failures++
        if (failures) {
            const pause = pauseAfter(error, failures)
            if (pause === undefined) this._fail(error)
            await wait(pause ?? delayAfter(failures))
        }
        if (turn === this._turn) this._look()
    }

    /** Resets the error state after a result. */
    private _isShown(): void {
        this._error = undefined
        this._failures = 0
    }

    private _changed(): void {
        if (this._isLive) this._isShown()
        this._show()
    }

    private get _isLive(): boolean {
        return this._isOpen && this._state?.status.getSnapshot().phase === "live"
    }

    private _fail(error: TrebuchetError): void {
        this._error = error
        this._collection._forgetSeen()
        this._show()
    }

    // Presentation

    _show(): void {
        const { _pending: pending } = this._collection
        const { _account: account } = this._backend
        if (account !== this._account) {
            // The result of a previous user is removed. The result of an anonymous user stays until a newer one arrives.
            if (this._account) {
                this._result = undefined
                this._position = new ResultPosition()
            }
            this._account = account
            this._error = undefined
        }
        const { _result: result, _items: before, _error: error } = this
        this._uncertain._forget(pending)
        const shown = result ? overlay(result, this._query, pending, this._position._seen, this._uncertain._documents) : []
        this._shown = new Map(
            shown.map((document) => {
                const old = this._shown.get(document.id)
                // Unchanged fields stay the same object.
                return [document.id, old && isSame(old.fields, document.fields) ? { ...document, fields: old.fields } : document]
            })
        )
        const items = result && [...this._shown.values()].map(({ fields }) => fields)
        if (items?.length !== before?.length || items?.some((each, index) => each !== before![index])) this._items = items
        this.status._show({
            phase: error ? "failed" : !result ? "waiting" : this._isLive ? "live" : "stale",
            hasMore: !!result?.hasMore,
            pending: pending.filter(isWaiting).length,
            error,
            count: result?.count,
        } as QueryStatus)
        if (this._items !== before) this._listeners.notify()
    }
}
