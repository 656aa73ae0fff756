/// What brings magic codes to those who asked for them.
public protocol MagicCodeMailer: Sendable {
    /// Hands a code over to be delivered, or throws. It should give up after some time by itself.
    ///
    /// - Parameter address: letters, digits and `. _ + -`, one `@`; it begins with a letter, a digit or `_`.
    func send(_ code: String, to address: String) async throws

    /// Tells somebody what has become of his account. Default: does nothing.
    ///
    /// - Parameter address: as above.
    func send(_ notice: AccountNotice, to address: String) async throws
}

extension MagicCodeMailer {
    /// Does nothing.
    public func send(_ notice: AccountNotice, to address: String) async throws {}
}

/// What is told by mail, where nobody asked for it.
public enum AccountNotice: Sendable, Hashable {
    /// The account has another address from now on; to the one of before.
    case addressChanged(to: String)
}

/// Why a mailer did not hand a code over; for the operator, not for clients.
public struct MailError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String

    /// - Parameter description: for the server's log.
    public init(_ description: String) { self.description = description }
}

/// Hands codes to a closure; for development, where the server prints them, and for tests.
public struct ClosureMailer: MagicCodeMailer {
    private let body: @Sendable (_ code: String, _ address: String) async throws -> Void
    private let notify: @Sendable (_ notice: AccountNotice, _ address: String) async throws -> Void

    /// - Parameter notify: gets what is told beside codes. Default: does nothing.
    public init(
        _ body: @escaping @Sendable (_ code: String, _ address: String) async throws -> Void,
        notify: @escaping @Sendable (_ notice: AccountNotice, _ address: String) async throws -> Void = { _, _ in }
    ) {
        self.body = body
        self.notify = notify
    }

    /// Calls the closure; throws what it throws.
    public func send(_ code: String, to address: String) async throws { try await body(code, address) }
    /// Calls the closure for notices; throws what it throws.
    public func send(_ notice: AccountNotice, to address: String) async throws { try await notify(notice, address) }
}
