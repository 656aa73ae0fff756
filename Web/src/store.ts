import type { Store } from "./types.js"

/** What a listener throws is told as any uncaught error is, and stops nobody else. */
export function report(error: unknown): void {
    const tell = (globalThis as any).reportError ?? console.error
    tell(error)
}

export class Listeners<Values extends unknown[] = []> {
    private _all = new Set<{ _call: (...values: Values) => void }>()

    get _count(): number {
        return this._all.size
    }

    _add(listener: (...values: Values) => void): () => void {
        // The same function may listen twice.
        const entry = { _call: listener }
        this._all.add(entry)
        return () => void this._all.delete(entry)
    }

    _tell(...values: Values): void {
        for (const entry of [...this._all]) {
            // It may have been taken out by one before it.
            if (!this._all.has(entry)) continue
            try {
                entry._call(...values)
            } catch (error) {
                report(error)
            }
        }
    }
}

/** A value with listeners. */
export class Value<T> implements Store<T> {
    private _listeners = new Listeners()

    constructor(private _value: T) {}

    getSnapshot = (): T => this._value
    subscribe = (listener: () => void): (() => void) => this._listeners._add(listener)

    _set(value: T): void {
        this._value = value
        this._listeners._tell()
    }
}
