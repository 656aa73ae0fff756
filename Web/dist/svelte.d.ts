import type { Store } from "./trebuchet.js";
/** A store in Svelte's form: `const todos = readable(list.state)`, and then `$todos`. Also for a part, or a status. */
export declare function readable<T>(store: Store<T>): {
    subscribe(run: (value: T) => void): () => void;
};
