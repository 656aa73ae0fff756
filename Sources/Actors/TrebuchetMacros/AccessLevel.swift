import SwiftSyntax

/// The access level of a declaration, as written in its modifiers.
enum AccessLevel: Int, Comparable {
    case `private`, `fileprivate`, `internal`, package, `public`

    /// Creates the level written in `modifiers`, or nil without one. `private(set)` and similar modifiers do not
    /// restrict reading.
    init?(_ modifiers: DeclModifierListSyntax) {
        for modifier in modifiers where modifier.detail == nil {
            switch modifier.name.tokenKind {
            case .keyword(.private): self = .private
            case .keyword(.fileprivate): self = .fileprivate
            case .keyword(.internal): self = .internal
            case .keyword(.package): self = .package
            case .keyword(.public), .keyword(.open): self = .public
            default: continue
            }
            return
        }
        return nil
    }

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The modifier of a member that makes it as visible as its type with this level.
    ///
    /// A private type needs no modifier: it already limits the visibility of its members, and `private` would hide a
    /// witness.
    var memberPrefix: String {
        switch self {
        case .public: "public "
        case .package: "package "
        case .internal, .fileprivate, .private: ""
        }
    }

    /// Returns the modifier that makes a member as visible as another member with the written level `level`, or none.
    func prefix(forMember level: AccessLevel?) -> String {
        switch level ?? .internal {
        case .private: "private "
        case .fileprivate: "fileprivate "
        case let level: min(self, level).memberPrefix
        }
    }
}
