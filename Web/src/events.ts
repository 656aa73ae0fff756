import { TrebuchetError } from "./errors.js"
import { Queue } from "./queue.js"
import type { Source } from "./source.js"
import type { Streams } from "./streams.js"
import type { Codec, Events, Store, StreamStatus } from "./types.js"

/** The events of a stream, converted for TypeScript. */
export class ObservedEvents<T> implements Events<T> {
    constructor(
        private _streams: Streams,
        private _source: Source,
        private _codec: Codec | undefined,
        /** The maximum number of events that wait for a slow reader. */
        private _buffer: number
    ) {}

    get status(): Store<StreamStatus> {
        return this._source._status
    }

    subscribe(listener: (event: T) => void, failed?: (error: TrebuchetError) => void): () => void {
        const end = this._streams._observe(
            this._source,
            (event) => {
                let value: any = event
                try {
                    if (this._codec && event != null) value = this._codec.read(event)
                } catch (error) {
                    // A skipped event would be an undetected gap.
                    return fail(new TrebuchetError("internal", "an event cannot be decoded: " + (error as any)?.message))
                }
                listener(value)
            },
            (error) => fail(error)
        )
        const fail = (error: TrebuchetError): void => {
            end()
            failed?.(error)
        }
        return end
    }

    [Symbol.asyncIterator](): AsyncIterator<T> {
        const queue = new Queue<T>()
        const end = this.subscribe(
            (event) => {
                if (queue._count < this._buffer) return queue._put(event)
                queue._end(new TrebuchetError("overflow", `more than ${this._buffer} unread events (eventBuffer)`))
            },
            (error) => queue._end(error)
        )
        queue._stop = end
        return queue
    }
}
