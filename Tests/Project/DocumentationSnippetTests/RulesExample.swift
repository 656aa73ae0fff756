import Foundation
import TestSupport
import Testing
import Trebuchet
import TrebuchetServices

/// The Swift rules of `Docs/Reference/Rules.md`.
struct RulesExample {
    private static var rules: ClosureRules {
        let rules = ClosureRules { principal, change, collection throws(CollectionError) in
            guard let principal else { throw change.forbidden("sign in first") }
            // The owner of a document is always its writer.
            guard change.after?.fields["owner"] == .string(principal.id) || change.after == nil else {
                throw change.forbidden("the owner must be the writer")
            }
        } read: { principal, document, collection in
            document.fields["isPublic"] == .bool(true) || document.creator == principal?.id
        }
        return rules
    }

    @Test("the rules of the page reject a change of owner, and show public documents to every client")
    func closures() throws {
        let (ada, eve) = (Principal(id: "ada"), Principal(id: "eve"))
        let own = Document(id: "1", fields: ["id": .string("1"), "owner": .string("ada")], creator: "ada")
        let given = Document(id: "1", fields: ["id": .string("1"), "owner": .string("eve")], creator: "ada")
        #expect(throws: CollectionError.forbidden(.create, id: "1", reason: "sign in first")) {
            try Self.rules.validate(nil, DocumentChangeRequest(creating: own), in: "todos")
        }
        try Self.rules.validate(ada, DocumentChangeRequest(creating: own), in: "todos")
        #expect(throws: CollectionError.forbidden(.update, id: "1", reason: "the owner must be the writer")) {
            try Self.rules.validate(ada, DocumentChangeRequest(updating: own, to: given), in: "todos")
        }
        #expect(
            Self.rules.isAllowed(ada, .read, own, in: "todos") && !Self.rules.isAllowed(eve, .read, own, in: "todos"))
        let shown = Document(id: "2", fields: ["isPublic": .bool(true)], creator: "ada")
        #expect(Self.rules.isAllowed(eve, .read, shown, in: "todos"))
    }

    @Test("the page shows the rules that are tested here")
    func page() throws {
        let file = URL(filePath: #filePath)
        let root = packageRoot
        func lines(_ text: String) -> String {
            text.split(separator: "\n").map { String($0.drop { $0 == " " }) }.joined(separator: "\n")
        }
        let page = lines(try String(contentsOf: root.appending(path: "Docs/Reference/Rules.md"), encoding: .utf8))
        let source = lines(try String(contentsOf: file, encoding: .utf8))
        let rules = try #require(source.firstMatch(of: /(?s)let rules = ClosureRules .*?\n}\nreturn/)).output
        #expect(page.contains(rules.dropLast("\nreturn".count)))
    }
}
