// A bundle of its own: pages without rooms do not load it.
export { JoinedRoom } from "./joined.js"
