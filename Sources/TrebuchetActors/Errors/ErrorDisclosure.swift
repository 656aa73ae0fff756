internal import Bytes

/// What callers get to know of errors that say nothing about whom their text is for: those that are not `Codable`.
///
/// Such a text may have anything in it, from the path of a file to a password. It goes to the server's log under a number,
/// and the caller gets the number.
package struct ErrorDisclosure: Sendable {
    /// The most of a text that goes to the log.
    private static let longestText = 4_000

    /// Whether callers get the text: for development.
    let showsText: Bool
    let log: @Sendable (String) -> Void

    package init(showsText: Bool, log: @escaping @Sendable (String) -> Void) {
        self.showsText = showsText
        self.log = log
    }

    /// The message for the caller, and the name of the error's type unless that is kept from him too; and the number that the log
    /// has it under.
    ///
    /// - Parameter what: what has failed, `the method`.
    package func tell(
        _ error: any Error, of what: String
    ) -> (message: String, type: String?, number: String?) {
        let secret = error as? SecretError
        let error = secret?.error ?? error
        let type = String(reflecting: Swift.type(of: error))
        guard !showsText else { return ("\(error)", type, nil) }
        let digits = String(UInt32.random(in: .min ... .max), radix: 16, uppercase: true)
        let number = String(repeating: "0", count: 8 - digits.count) + digits
        let text =
            secret == nil ? "\(error)".prefix(bytes: Self.longestText) : "its text may say what is not to be known"
        log("error \(number): \(what) threw \(type): \(text)")
        return ("\(what) failed (error \(number); the server's log has the text)", nil, number)
    }

    /// What an error is called in the program: its type, and its case. Never what it says of itself, nor what is in it.
    static func name(of error: any Error) -> String {
        let error = (error as? SecretError)?.error ?? error
        let type = String(reflecting: Swift.type(of: error))
        guard !(error is any CustomReflectable) else { return type }
        let mirror = Mirror(reflecting: error)
        guard mirror.displayStyle == .enum else { return type }
        if let label = mirror.children.first?.label { return "\(type).\(label)" }
        let describesItself = error is any CustomStringConvertible || error is any CustomDebugStringConvertible
        return describesItself || error is any TextOutputStreamable ? type : "\(type).\(error)"
    }
}

/// What a method has thrown of whose calls nobody is to know what with they were made: its text may have that in it.
package struct SecretError: Error {
    let error: any Error

    /// The error itself where its caller is told all that it says, and no log has it.
    package static func hiding(_ error: any Error) -> any Error {
        error is TrebuchetError || error is CancellationError || error is any Encodable
            ? error : SecretError(error: error)
    }
}
