// What the services build on: in their bundle it is the file beside them, which an app has anyway.
export * from "../index.js"
