internal import Platform
internal import Trebuchet

/// Who may do something: words of a file of rules.
struct RoleSet: Sendable, Hashable {
    /// Everybody, signed in or not.
    static let anyone = "anyone"
    static let nobody = "nobody"
    /// A guest or a user.
    static let signedIn = "signed-in"
    /// Who is signed in as the one who created the document.
    static let creator = "creator"
    /// Everybody, with documents of somebody who was not signed in.
    static let noCreator = "no-creator"
    /// What `Accounts` gives those who are signed in.
    static let builtIn = ["guest", "user"]

    /// Words that speak of a document which is there.
    static let ofDocuments = [creator, noCreator]
    static let words = [anyone, nobody, signedIn] + builtIn + ofDocuments

    private let admitsAnyone: Bool
    private let admitsSignedIn: Bool
    private let admitsCreator: Bool
    private let admitsNoCreator: Bool
    private let roles: Set<String>
    /// As they were written.
    let names: [String]

    init(_ names: [String]) {
        self.names = names
        admitsAnyone = names.contains(Self.anyone)
        admitsSignedIn = names.contains(Self.signedIn)
        admitsCreator = names.contains(Self.creator)
        admitsNoCreator = names.contains(Self.noCreator)
        roles = Set(names).subtracting([Self.anyone, Self.nobody, Self.signedIn, Self.creator, Self.noCreator])
    }

    /// Whether somebody may, whatever document it is about.
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

    /// Whether the answer depends on the document for some.
    var looksAtDocuments: Bool { admitsCreator || admitsNoCreator }
    var admitsEverybody: Bool { admitsAnyone }

    var text: String { names.joined(separator: ", ") }
}
