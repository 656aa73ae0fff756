import type { Store } from "./types.js"

/** Calls the listener with the value of now, and with each new one. Gives what ends it. */
export function watch<T>(store: Store<T>, listener: (value: T) => void): () => void {
    const tell = (): void => listener(store.getSnapshot())
    const end = store.subscribe(tell)
    tell()
    return end
}

/** Shows a value as the text of an element, empty while there is none. */
export function show<T>(store: Store<T>, element: Node, text: (value: NonNullable<T>) => string = String): () => void {
    return watch(store, (value) => (element.textContent = value == null ? "" : text(value)))
}

/**
 * Keeps an element for each element of an array, in its order: made by `make` when its key is new, brought up to date by `update` when
 * its value has changed, and taken away when its key is gone.
 */
export function list<T, E extends ChildNode>(
    store: Store<readonly T[] | undefined>,
    parent: ParentNode & Node,
    key: (value: T) => unknown,
    make: (value: T) => E,
    update: (element: E, value: T) => void = () => {}
): () => void {
    let shown = new Map<unknown, { element: E; value: T }>()
    return watch(store, (values = []) => {
        const next: typeof shown = new Map()
        let place = parent.firstChild
        for (const value of values) {
            const name = key(value)
            if (next.has(name)) continue
            const { element, value: before } = shown.get(name) ?? { element: make(value), value: undefined }
            shown.delete(name)
            if (before !== value) update(element, value)
            next.set(name, { element, value })
            // Others, that are gone, may stand before it until the end.
            if (place === element) place = element.nextSibling
            else parent.insertBefore(element, place)
        }
        for (const { element } of shown.values()) element.remove()
        shown = next
    })
}
