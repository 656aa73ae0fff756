internal import Bytes
internal import Platform
internal import TrebuchetWire

/// An error that a call ended with, as it goes over the wire.
package struct CallFailure {
    package let code: ErrorCode
    package let message: String
    /// Of an error that the actor's method threw: its type, and the error in JSON when it is `Codable`.
    package let type: String?
    package let data: [UInt8]?
    /// Of a rate that was exceeded.
    package var retryAfterMilliseconds: Int?
    /// What the method threw, as the program calls it; nil of an error of ours. Found out when it is asked for.
    package var thrown: String? { error.map { ErrorDisclosure.name(of: $0) } }
    private var error: (any Error)?
    /// Under which the log has it.
    package private(set) var number: String?

    /// - Parameter what: what has failed, `the method`.
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
                let type = String(reflecting: Swift.type(of: error))
                self.init(code: .application, message: "\(error)", type: type, data: Array(buffer.bytes))
                self.error = error
                return
            }
        }
        let told = disclosure.tell(error, of: what)
        self.init(code: .application, message: told.message, type: told.type, data: nil)
        (self.error, number) = (error, told.number)
    }

    /// The same, or what is said instead when it is too large for the client.
    package func fitting(_ largestMessage: Int) -> CallFailure {
        // A character of a text may take six bytes in JSON.
        let count =
            256 + 6 * (code.rawValue.utf8.count + message.utf8.count + (type?.utf8.count ?? 0)) + (data?.count ?? 0)
        guard count > largestMessage else { return self }
        let start = message.prefix(bytes: 200)
        var short = CallFailure(
            code: code.rawValue.utf8.count > 64 ? .application : code,
            message: "\(start)… (the whole error is larger than the messages that the client takes)",
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
