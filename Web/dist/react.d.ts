import type { Actor, ActorShape, ActorType, Client, Part, State, Store, UntypedActor } from "./trebuchet.js";
/** Returns an actor: the same object in each rendering. */
export declare function useActor(client: Client, id: string): UntypedActor;
export declare function useActor<Shape extends ActorShape>(client: Client, type: ActorType<Shape>, id: string): Actor<Shape>;
/** Returns the value of a state, of a part of it, or of a status. The component is rendered again when the value changes. */
export declare function useActorState<T, Path extends string>(state: State<T>, path: Path): Part<T, Path> | undefined;
export declare function useActorState<T>(store: Store<T>): T;
