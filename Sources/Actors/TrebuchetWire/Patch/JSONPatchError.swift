/// An error: a patch was not applied. The document is unchanged.
package struct JSONPatchError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of the error.
    package enum Code: Sendable {
        /// The patch violates RFC 6902.
        case malformedPatch
        /// The document is invalid where the patch changes it, nested too deeply, or has a duplicate name on a path.
        case malformedDocument
        /// The target of a path does not exist, or cannot hold a value.
        case missingTarget
        /// A `test` found another value.
        case testFailed
        /// The result, or the work for it, exceeds the limit.
        case tooLarge
    }

    package let code: Code
    /// The description of the problem.
    package let message: String
    /// The index of the failed operation; nil if the patch or the result as a whole is invalid.
    package internal(set) var operation: Int?

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { operation.map { "operation \($0): \(message)" } ?? message }
}
