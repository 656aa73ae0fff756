import type { Store } from "./types.js"

/** Reports an error of a listener like an uncaught error; other listeners are not affected. */
export function report(error: unknown): void {
    const handle = (globalThis as any).reportError ?? console.error
    handle(error)
}

export class Listeners<Values extends unknown[] = []> {
    private _all = new Set<{ _call: (...values: Values) => void }>()

    get size(): number {
        return this._all.size
    }

    add(listener: (...values: Values) => void): () => void {
        // A function may be added twice.
        const entry = { _call: listener }
        this._all.add(entry)
        return () => void this._all.delete(entry)
    }

    notify(...values: Values): void {
        for (const entry of [...this._all]) {
            // An earlier listener may have removed it.
            if (!this._all.has(entry)) continue
            try {
                entry._call(...values)
            } catch (error) {
                report(error)
            }
        }
    }
}

/** A value with listeners. It has no other members: the services, whose bundle mangles names differently, extend this class. */
export class Value<T> implements Store<T> {
    readonly getSnapshot: () => T
    readonly getServerSnapshot: () => T
    readonly subscribe: (listener: () => void) => () => void
    readonly set: (value: T) => void

    /** @param first the value that a server renders, and the first one of a page that hydrates it. */
    constructor(value: T, first = value) {
        const listeners = new Listeners()
        this.getSnapshot = () => value
        this.getServerSnapshot = () => first
        this.subscribe = (listener) => listeners.add(listener)
        this.set = (next) => {
            value = next
            listeners.notify()
        }
    }
}
