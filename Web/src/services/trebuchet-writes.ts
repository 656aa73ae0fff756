// This is a separate bundle, which is loaded once there are writes to send and a connection for them.
export { send } from "./write-sender.js"
