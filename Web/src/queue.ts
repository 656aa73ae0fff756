import type { TrebuchetError } from "./errors.js"

/** The buffer of an async iteration: waiting values, and optionally a final error. */
export class Queue<T> implements AsyncIterator<T> {
    private _values: T[] = []
    private _error: TrebuchetError | undefined
    private _isOver = false
    private _readers: { _resolve(result: IteratorResult<T>): void; _reject(error: unknown): void }[] = []
    /** Stops the source of the values. */
    _stop: () => void = () => {}

    get _count(): number {
        return this._values.length
    }

    /**
     * Adds a value.
     *
     * @param replaces true if the value replaces the waiting ones.
     */
    _put(value: T, replaces?: boolean): void {
        if (this._isOver) return
        const reader = this._readers.shift()
        if (reader) return reader._resolve({ value, done: false })
        if (replaces) this._values.length = 0
        this._values.push(value)
    }

    /** Ends the iteration after the waiting values have been read. */
    _end(error?: TrebuchetError): void {
        if (this._isOver) return
        this._isOver = true
        this._error = error
        this._stop()
        for (const reader of this._readers.splice(0)) this._finish(reader._resolve, reader._reject)
    }

    private _finish(resolve: (result: IteratorResult<T>) => void, reject: (error: unknown) => void): void {
        const error = this._error
        this._error = undefined
        if (error) reject(error)
        else resolve({ value: undefined, done: true })
    }

    next(): Promise<IteratorResult<T>> {
        return new Promise((resolve, reject) => {
            if (this._values.length) resolve({ value: this._values.shift()!, done: false })
            else if (this._isOver) this._finish(resolve, reject)
            else this._readers.push({ _resolve: resolve, _reject: reject })
        })
    }

    return(): Promise<IteratorResult<T>> {
        this._values = []
        this._end()
        return Promise.resolve({ value: undefined, done: true })
    }
}
