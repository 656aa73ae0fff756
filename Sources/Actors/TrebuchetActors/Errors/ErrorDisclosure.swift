internal import Bytes

/// The policy for errors that are not `Codable` and therefore not intended for callers.
///
/// The text of such an error may contain any data, from a file path to a password. It is written to the server log under a
/// number, and the caller receives the number.
package struct ErrorDisclosure: Sendable {
    /// The maximum length of a logged text in bytes.
    private static let maximumTextLength = 4_000

    /// Set to send the text to callers; for development.
    let showsText: Bool
    let log: @Sendable (String) -> Void

    package init(showsText: Bool, log: @escaping @Sendable (String) -> Void) {
        self.showsText = showsText
        self.log = log
    }

    /// Logs an error. Returns the message for the caller, the type name if the caller may see it, and the number of the log
    /// entry.
    ///
    /// - Parameter what: the operation that has failed, such as `the method`.
    package func disclose(
        _ error: any Error, of what: String
    ) -> (message: String, type: String?, number: String?) {
        let secret = error as? RedactedError
        let error = secret?.error ?? error
        let type = ErrorNames.name(of: Swift.type(of: error))
        guard !showsText else { return ("\(error)", type, nil) }
        let digits = String(UInt32.random(in: .min ... .max), radix: 16, uppercase: true)
        let number = String(repeating: "0", count: 8 - digits.count) + digits
        let text =
            secret == nil ? "\(error)".prefix(bytes: Self.maximumTextLength) : "redacted"
        log("error \(number): \(what) threw \(type): \(text)")
        return ("\(what) failed (error \(number); see the server log)", nil, number)
    }

    /// Returns the type and the case of an error. The name contains neither a custom description nor associated values.
    static func name(of error: any Error) -> String {
        let error = (error as? RedactedError)?.error ?? error
        let type = ErrorNames.name(of: Swift.type(of: error))
        guard !(error is any CustomReflectable) else { return type }
        let mirror = Mirror(reflecting: error)
        guard mirror.displayStyle == .enum else { return type }
        if let label = mirror.children.first?.label { return "\(type).\(label)" }
        let describesItself = error is any CustomStringConvertible || error is any CustomDebugStringConvertible
        return describesItself || error is any TextOutputStreamable ? type : "\(type).\(error)"
    }
}

/// An error thrown by a redacted method. Its description may contain arguments, so it is never logged.
package struct RedactedError: Error {
    let error: any Error

    /// Wraps an error of a redacted method. An error whose whole text the caller receives is returned as it is, because the log
    /// does not contain it.
    package static func hiding(_ error: any Error) -> any Error {
        error is TrebuchetError || error is CancellationError || error is any Encodable
            ? error : RedactedError(error: error)
    }
}
