// This is a separate bundle: pages without rooms do not load it.
export { JoinedRoom } from "./joined-room.js"
