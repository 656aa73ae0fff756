internal import Platform
internal import Trebuchet

/// A set of roles and keywords in a rules file that authorizes callers.
struct RoleSet: Sendable, Hashable {
    /// All callers, signed in or not.
    static let anyone = "anyone"
    static let nobody = "nobody"
    /// A guest or a user.
    static let signedIn = "signed-in"
    /// The signed-in creator of the document.
    static let creator = "creator"
    /// All callers, for documents without a creator.
    static let noCreator = "no-creator"
    /// The roles that `Accounts` assigns to signed-in principals.
    static let builtIn = ["guest", "user"]

    /// Keywords that depend on an existing document.
    static let ofDocuments = [creator, noCreator]
    static let words = [anyone, nobody, signedIn] + builtIn + ofDocuments

    private let admitsAnyone: Bool
    private let admitsSignedIn: Bool
    private let admitsCreator: Bool
    private let admitsNoCreator: Bool
    private let roles: Set<String>
    /// The roles and keywords as written in the file.
    let names: [String]

    init(_ names: [String]) {
        self.names = names
        admitsAnyone = names.contains(Self.anyone)
        admitsSignedIn = names.contains(Self.signedIn)
        admitsCreator = names.contains(Self.creator)
        admitsNoCreator = names.contains(Self.noCreator)
        roles = Set(names).subtracting([Self.anyone, Self.nobody, Self.signedIn, Self.creator, Self.noCreator])
    }

    /// Returns whether a principal is authorized for every document.
    func admits(_ principal: Principal?) -> Bool {
        if admitsAnyone { return true }
        guard let principal else { return false }
        return admitsSignedIn || !roles.isDisjoint(with: principal.roles)
    }

    func admits(_ principal: Principal?, _ document: Document) -> Bool {
        if admits(principal) { return true }
        guard let creator = document.creator else { return admitsNoCreator }
        return admitsCreator && principal?.id.isSameBytes(as: creator) == true
    }

    /// True when the decision can depend on the document.
    var dependsOnDocument: Bool { admitsCreator || admitsNoCreator }
    var admitsAllCallers: Bool { admitsAnyone }

    var text: String { names.joined(separator: ", ") }
}
