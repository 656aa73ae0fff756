import SwiftSyntax

/// How far a declaration can be seen, as written in its modifiers.
enum AccessLevel: Int, Comparable {
    case `private`, `fileprivate`, `internal`, package, `public`

    /// The level written in `modifiers`, or nil when none is; `private(set)` and its like say nothing about reading.
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

    /// What to write before a member of a type with this level, so that the member is as visible as the type.
    ///
    /// A private type needs no modifier: its members are bounded by it already, and `private` would hide a witness.
    var memberPrefix: String {
        switch self {
        case .public: "public "
        case .package: "package "
        case .internal, .fileprivate, .private: ""
        }
    }

    /// What to write before a member that should be as visible as another member, which says `level` or nothing.
    func prefix(forMember level: AccessLevel?) -> String {
        switch level ?? .internal {
        case .private: "private "
        case .fileprivate: "fileprivate "
        case let level: min(self, level).memberPrefix
        }
    }
}
