import type { ActorInfo, ActorShape, ActorType } from "./types.js"

/** Returns the type of an actor, from the information that the generator has collected about it. */
export function actorType<Shape extends ActorShape>(info: ActorInfo<Shape>): ActorType<Shape> {
    return info
}
