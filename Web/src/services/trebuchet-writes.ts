// A bundle of its own, which is loaded once there is something to send and a connection for it.
export { send } from "./sent.js"
