import { TrebuchetError } from "./errors.js"
import { member, unencodable, parsePath } from "./json.js"
import { Queue } from "./queue.js"
import type { Source } from "./source.js"
import { Listeners, report } from "./store.js"
import type { Streams } from "./streams.js"
import type { Codec, Filter, State, Store, StreamStatus } from "./types.js"

/** A placeholder other than `undefined`, which is a possible value. */
const nothing = {}

/** A state, or a part of one, converted for TypeScript. */
export class ObservedState<T> implements State<T> {
    private _names: string[]
    private _raw: unknown = nothing
    private _value: T | undefined
    private _listeners = new Listeners()
    private _stop: (() => void) | undefined

    constructor(
        private _streams: Streams,
        private _source: Source,
        private _codec: Codec | undefined,
        private _path = ""
    ) {
        this._names = parsePath(_path)
    }

    get status(): Store<StreamStatus> {
        return this._source._status
    }

    getSnapshot = (): T | undefined => {
        const raw: any = this._names.reduce(member, this._source._value)
        if (raw !== this._raw) {
            this._raw = raw
            try {
                this._value = raw == null || !this._codec ? raw : this._codec.read(raw)
            } catch (error) {
                // The previous value stays: a view that reads it cannot handle the error.
                report(error)
            }
        }
        return this._value
    }

    subscribe = (listener: () => void): (() => void) => {
        const end = this._listeners.add(listener)
        if (!this._stop) {
            let seen = this.getSnapshot()
            const changed = (): void => {
                const value = this.getSnapshot()
                if (Object.is(value, seen)) return
                seen = value
                this._listeners.notify()
            }
            this._stop = this._streams._observe(this._source, changed, () => {})
        } else this._streams._begin(this._source)
        return () => {
            end()
            if (this._listeners.size) return
            this._stop?.()
            this._stop = undefined
        }
    };

    [Symbol.asyncIterator](): AsyncIterator<T> {
        const queue = new Queue<T>()
        const take = (): void => {
            const value = this.getSnapshot()
            if (value !== undefined) queue._put(value, true)
        }
        const ends = [
            this.subscribe(take),
            this._source._ends.add((error) => queue._end(error)),
        ]
        queue._stop = () => ends.forEach((end) => end())
        take()
        return queue
    }

    at(path: string): State<any> {
        return new ObservedState<any>(this._streams, this._source, partOf(this._codec, path), this._path + path)
    }

    filter(filter: Filter): State<any> {
        const flaw = unencodable(filter)
        if (flaw) throw new TrebuchetError("invalidArguments", `filter${flaw} cannot be sent as JSON`)
        const { actorID, targetIdentifier, filter: own } = this._source._target
        const path = (own?.path ?? "") + this._path + (filter.path ?? "")
        const all = { ...own, ...filter, ...(path && { path }) }
        const source = this._streams._source({ actorID, targetIdentifier, filter: all }, false)
        return new ObservedState<any>(this._streams, source, partOf(this._codec, filter.path ?? ""))
    }
}

function partOf(codec: Codec | undefined, path: string): Codec | undefined {
    return parsePath(path).reduce<Codec | undefined>((part, name) => part?.part?.(name), codec)
}
