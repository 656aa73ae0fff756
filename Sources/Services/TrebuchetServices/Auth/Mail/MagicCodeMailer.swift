/// Delivers magic codes to their users.
public protocol MagicCodeMailer: Sendable {
    /// Passes a code on for delivery, or throws. The implementation should have a timeout.
    ///
    /// - Parameter address: letters, digits and `. _ + -`, one `@`; it begins with a letter, a digit or `_`.
    func send(_ code: String, to address: String) async throws

    /// Notifies a user of a change to the account. Default: does nothing.
    ///
    /// - Parameter address: as above.
    func send(_ notice: AccountNotice, to address: String) async throws
}

extension MagicCodeMailer {
    /// Does nothing.
    public func send(_ notice: AccountNotice, to address: String) async throws {}
}

/// A notice by mail that the user has not requested.
public enum AccountNotice: Sendable, Hashable {
    /// The account has another address from now on; sent to the previous one.
    case addressChanged(to: String)
}

/// The reason why a mailer did not deliver a code; for the operator, not for clients.
public struct MailError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String

    /// - Parameter description: the text for the server's log.
    public init(_ description: String) { self.description = description }
}

/// Passes codes to a closure; for development, where the server prints them, and for tests.
public struct ClosureMailer: MagicCodeMailer {
    private let body: @Sendable (_ code: String, _ address: String) async throws -> Void
    private let notify: @Sendable (_ notice: AccountNotice, _ address: String) async throws -> Void

    /// - Parameter notify: receives notices. Default: does nothing.
    public init(
        _ body: @escaping @Sendable (_ code: String, _ address: String) async throws -> Void,
        notify: @escaping @Sendable (_ notice: AccountNotice, _ address: String) async throws -> Void = { _, _ in }
    ) {
        self.body = body
        self.notify = notify
    }

    /// Calls the closure and rethrows its error.
    public func send(_ code: String, to address: String) async throws { try await body(code, address) }
    /// Calls the closure for notices and rethrows its error.
    public func send(_ notice: AccountNotice, to address: String) async throws { try await notify(notice, address) }
}
