internal import Platform
internal import TrebuchetActors

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An error of signing in or out.
public enum AuthError: Error, Codable, Sendable, Hashable {
    /// The text is not a mail address that codes can be sent to.
    case invalidAddress
    /// Too many codes were requested or tried, or too many guests created. The value is the delay before the next attempt.
    case rateLimited(retryAfterMilliseconds: Int)
    /// The code is wrong.
    case wrongCode(triesLeft: Int)
    /// No code was sent to this address, or it has expired, was used, or was tried too often. The client must request another.
    case noCode
    /// The mail system did not accept the code.
    case mailNotSent
    /// The refresh token is unknown, expired or already used, or its session has ended. The session is over.
    case sessionEnded(SessionEndReason = .unknown)
    /// The connection is not signed in.
    case notSignedIn
    /// The account has no such session.
    case noSuchSession
    /// The operation requires a recent sign-in, or a code that was sent to the account's address.
    case notFresh
    /// Another account has the address.
    case addressTaken
    /// The deletion hook failed, so nothing of the account was deleted.
    case notDeleted
    /// The text is too long, or has control characters.
    case invalidLabel
    /// The server has no provider of this name.
    case unknownProvider
    /// The ID token is invalid, for this reason.
    case invalidToken(String)
    /// The provider's keys are unavailable.
    case providerUnavailable
    /// The server has reached a limit: `mailsInFlightPerHost`, `waitingMails`, `guests`, `accounts` or `waiting`.
    case limitReached(String)
    /// The store of the accounts does not respond.
    case unavailable
    /// The server does not identify the caller: it does not use the access policy of its accounts.
    case withoutAccessPolicy
    /// There was no `TrebuchetBackend` when the shared value was created.
    case withoutBackend
}

extension AuthError: NamedError {
    package static var wireName: String { "TrebuchetServices.AuthError" }
}

extension AuthError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .invalidAddress: "invalid mail address; pass one such as ada@example.org"
        case .rateLimited(let wait): "too many attempts; try again in \((wait + 999) / 1000) s"
        case .wrongCode(let triesLeft):
            triesLeft == 0
                ? "wrong code, and too many attempts; request another code"
                : "wrong code; \(triesLeft.counted("attempt")) left"
        case .noCode: "no valid code for this address; request another code"
        case .mailNotSent: "the code could not be sent; try again later"
        case .sessionEnded(let reason): "the session has ended: \(reason); sign in again"
        case .notSignedIn: "not signed in"
        case .noSuchSession: "the account does not have this session"
        case .notFresh: "sign in again first; to delete the account, a code sent to its address also suffices"
        case .addressTaken: "another account has this address"
        case .notDeleted: "the data of this account could not be deleted; try again later"
        case .invalidLabel:
            "a label must be a string of at most \(SessionInfo.maximumLabelLength) bytes without control characters"
        case .unknownProvider: "unknown provider"
        case .invalidToken(let reason): "the token was not accepted: \(reason)"
        case .providerUnavailable: "the provider is temporarily unavailable; try again later"
        case .limitReached(let limit): "the server has reached its limit '\(limit)'; try again later"
        case .unavailable: "accounts are temporarily unavailable; try again later"
        case .withoutAccessPolicy:
            "the server does not identify callers; create it with 'access: accounts.accessPolicy'"
        case .withoutBackend:
            "no backend is set; call TrebuchetBackend.use(…) before the first @Shared(.trebuchetAuth)"
        }
    }
}
