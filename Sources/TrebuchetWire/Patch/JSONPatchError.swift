/// A patch that was not applied. The document is as it was.
package struct JSONPatchError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Code: Sendable {
        /// The patch is not what RFC 6902 asks for.
        case malformedPatch
        /// The document is no JSON where the patch touches it, nests too deep, or has a name twice that a path goes through.
        case malformedDocument
        /// A path leads to nothing, or to no place where a value could be.
        case missingTarget
        /// A `test` found another value.
        case testFailed
        /// The result, or what it takes to get there, is beyond the limit.
        case tooLarge
    }

    package let code: Code
    /// What is wrong.
    package let message: String
    /// Which operation failed, counted from 0; nil when it is the patch or the result as a whole.
    package internal(set) var operation: Int?

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { operation.map { "operation \($0): \(message)" } ?? message }
}
