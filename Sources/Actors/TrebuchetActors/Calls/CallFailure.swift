internal import Bytes
internal import Platform
internal import TrebuchetWire

/// The error of a call, as it is sent.
package struct CallFailure {
    package let code: ErrorCode
    package let message: String
    /// The type name of an error that the actor's method threw, and in `data` its JSON if it is `Codable`.
    package let type: String?
    package let data: [UInt8]?
    /// The retry delay after a rate limit was exceeded.
    package var retryAfterMilliseconds: Int?
    /// The program's name for the error that the method threw; nil for an error of the framework. Computed on access.
    package var thrown: String? { error.map { ErrorDisclosure.name(of: $0) } }
    private var error: (any Error)?
    /// The number of the error in the server log.
    package private(set) var number: String?

    /// Creates the failure for an error.
    ///
    /// - Parameter what: the operation that has failed, such as `the method`.
    package init(_ error: any Error, of what: String, coder: ValueCoder, _ disclosure: ErrorDisclosure) {
        if let error = error as? TrebuchetError {
            self.init(code: error.code.wire, message: error.message, type: error.type, data: error.data)
            retryAfterMilliseconds = error.retryAfter?.milliseconds
            return
        }
        if error is CancellationError {
            self.init(code: .cancelled, message: "the call was cancelled", type: nil, data: nil)
            return
        }
        if let encodable = error as? any Error & Encodable {
            var buffer = ByteBuffer()
            if (try? coder.encode(encodable, into: &buffer)) != nil {
                let type = ErrorNames.name(of: Swift.type(of: error))
                self.init(code: .application, message: "\(error)", type: type, data: Array(buffer.bytes))
                self.error = error
                return
            }
        }
        let disclosed = disclosure.disclose(error, of: what)
        self.init(code: .application, message: disclosed.message, type: disclosed.type, data: nil)
        (self.error, number) = (error, disclosed.number)
    }

    /// Returns this failure, or a shortened one if it exceeds the client's message limit.
    package func truncated(_ largestMessage: Int) -> CallFailure {
        // One character may take six bytes in JSON.
        let count =
            256 + 6 * (code.rawValue.utf8.count + message.utf8.count + (type?.utf8.count ?? 0)) + (data?.count ?? 0)
        guard count > largestMessage else { return self }
        let start = message.prefix(bytes: 200)
        var short = CallFailure(
            code: code.rawValue.utf8.count > 64 ? .application : code,
            message: "\(start)… (truncated: the error exceeds the client's message limit)",
            type: nil, data: nil)
        (short.error, short.number) = (error, number)
        return short
    }

    private init(code: ErrorCode, message: String, type: String?, data: [UInt8]?) {
        self.code = code
        self.message = message
        self.type = type
        self.data = data
    }
}
