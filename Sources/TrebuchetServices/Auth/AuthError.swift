#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Why signing in or out did not work.
public enum AuthError: Error, Codable, Sendable, Hashable {
    /// The text is no mail address that codes are sent to.
    case invalidAddress
    /// Too many codes were asked for or tried, or too many guests made; it may be tried again after so many milliseconds.
    case rateLimited(retryAfterMilliseconds: Int)
    /// The code is not the one that was sent.
    case wrongCode(triesLeft: Int)
    /// No code was sent to this address, or it has expired, was used, or was tried too often: ask for another.
    case noCode
    /// The code could not be handed to the mail system.
    case mailNotSent
    /// The refresh token is unknown, expired, of a session that has ended, or was used before; the session is over.
    case sessionEnded(SessionEnd = .unknown)
    /// There is nobody to sign out.
    case notSignedIn
    /// The account has no such session.
    case noSuchSession
    /// It takes somebody who has just signed in, or a code that was sent to the account's address.
    case notFresh
    /// Another account has the address.
    case addressTaken
    /// The app's own data of the account could not be deleted; nothing of it was.
    case notDeleted
    /// The text is too long, or has control characters.
    case invalidLabel
    /// The server knows no provider of this name.
    case unknownProvider
    /// The ID token was not accepted, for this reason.
    case invalidToken(String)
    /// The provider's keys cannot be had now.
    case providerUnavailable
    /// A limit of the server is reached: `mailsInFlight`, `accounts`, `waiting`.
    case limitReached(String)
    /// What the server keeps accounts in does not answer.
    case unavailable
    /// The server does not know who calls: it was made without the access policy of its accounts.
    case withoutAccessPolicy
    /// No `TrebuchetBackend` was there when the shared value was made.
    case withoutBackend
}

extension AuthError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }

    public var description: String {
        switch self {
        case .invalidAddress: "this is not a mail address that a code can be sent to"
        case .rateLimited(let wait): "too many attempts; try again in \((wait + 999) / 1000) s"
        case .wrongCode(let triesLeft):
            triesLeft == 0
                ? "the code is wrong, and was tried too often; ask for another"
                : "the code is wrong; \(triesLeft) more \(triesLeft == 1 ? "try" : "tries")"
        case .noCode: "there is no code for this address any more; ask for another"
        case .mailNotSent: "the code could not be sent; try again later"
        case .sessionEnded(let why): "the session has ended: \(why); sign in again"
        case .notSignedIn: "nobody is signed in"
        case .noSuchSession: "the account has no such session"
        case .notFresh: "sign in again first; to delete the account, a code that was sent to its address is enough"
        case .addressTaken: "another account has this address"
        case .notDeleted: "what the server keeps of this account could not be deleted now; try again later"
        case .invalidLabel: "a label is a text of up to \(SessionInfo.longestLabel) bytes without control characters"
        case .unknownProvider: "the server knows no such provider"
        case .invalidToken(let why): "the token was not accepted: \(why)"
        case .providerUnavailable: "the provider cannot be asked now; try again later"
        case .limitReached(let limit): "the server has reached its limit '\(limit)'; try again later"
        case .unavailable: "the server cannot get at its accounts now; try again later"
        case .withoutAccessPolicy: "the server does not know its callers: make it with 'access: accounts.accessPolicy'"
        case .withoutBackend:
            "there is no backend: call TrebuchetBackend.use(…) before the first @Shared(.trebuchetAuth)"
        }
    }
}
