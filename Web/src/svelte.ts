import type { Store } from "./types.js"

/** A store in Svelte's form: `const todos = readable(list.state)`, and then `$todos`. Also for a part, or a status. */
export function readable<T>(store: Store<T>): { subscribe(run: (value: T) => void): () => void } {
    return {
        subscribe(run) {
            const tell = (): void => run(store.getSnapshot())
            const end = store.subscribe(tell)
            try {
                tell()
            } catch (error) {
                // Nobody has what ends it.
                end()
                throw error
            }
            return end
        },
    }
}
