import type { Store } from "./types.js"

/** Returns a store in Svelte's form: `const todos = readable(list.state)`, and then `$todos`. It also accepts a part or a status. */
export function readable<T>(store: Store<T>): { subscribe(run: (value: T) => void): () => void } {
    return {
        subscribe(run) {
            const notify = (): void => run(store.getSnapshot())
            const end = store.subscribe(notify)
            try {
                notify()
            } catch (error) {
                // The caller did not receive the function that ends the subscription.
                end()
                throw error
            }
            return end
        },
    }
}
