import Bytes
import Platform
import Testing
import Trebuchet
import TrebuchetWire

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite struct MutationDeduplicationWindowTests {
    private static let client = "0123456789abcdef"

    @Test("a number repeated with another command is refused without an effect")
    func reusedNumber() {
        var table = DocumentTable(limits: CollectionLimits())
        func apply(_ number: Int, _ command: DocumentCommand) -> CollectionError? {
            let mutation = DocumentMutation(number: number, command: command)
            return table.apply(mutation, from: Self.client, creator: nil, at: 0) { _, _ in true }.error
        }
        let fields: JSONObject = ["v": .integer(1), "w": .array([.null, .bool(true), .string("x"), .number(0.5)])]
        #expect(apply(1, .add("a", fields)) == nil)
        #expect(apply(1, .add("a", fields)) == nil, "a repeated mutation has its outcome")
        let others: [DocumentCommand] = [
            .add("b", fields), .add("a"), .add("a", fields.with("v", .integer(2))), .delete(id: "a"),
            .update(id: "a", fields: fields), .link(id: "a", field: "v", target: .integer(1)),
        ]
        for other in others { #expect(apply(1, other) == .numberReused, "\(other)") }
        #expect(table.document("b") == nil && table.document("a") != nil)
        #expect(apply(2, .link(id: "a", field: "tags", target: .string("x"))) == nil)
        #expect(apply(2, .unlink(id: "a", field: "tags", target: .string("x"))) == .numberReused)
        #expect(apply(3, .add("a")) == .alreadyExists(id: "a"))
        #expect(apply(3, .add("c")) == .numberReused, "this also applies to a refused mutation")
    }

    @Test("a deduplication window survives storing; one stored without commands is still valid")
    func stored() throws {
        var window = MutationDeduplicationWindow()
        window.remember(MutationOutcome(number: 1, revision: 4), of: DocumentMutation(number: 1, command: .add("a")))
        var lines = ByteBuffer()
        CollectionLogFormat.write(MutationWindowChange(window: window, known: nil), of: ByteText("client"), to: &lines)
        var contents = CollectionContents()
        var reader = CollectionLogLineReader(Array(lines.bytes))
        #expect(try reader.read(10, into: &contents) == false)
        let again = try #require(contents.clients[ByteText("client")])
        #expect(again == window)
        #expect(again.outcome(of: DocumentMutation(number: 1, command: .add("a")))?.error == nil)
        #expect(again.outcome(of: DocumentMutation(number: 1, command: .add("b")))?.error == .numberReused)
        let old = #"{"last":1,"outcomes":[{"number":1,"revision":4}]}"#
        let before = try Array(old.utf8).withUnsafeBytes {
            try ValueCoder().decode(MutationDeduplicationWindow.self, from: $0)
        }
        #expect(before.outcome(of: DocumentMutation(number: 1, command: .add("b")))?.revision == 4)
    }

    @Test("a window has the last outcomes of a client, with their errors, in about the bytes of their JSON")
    func bounded() throws {
        var window = MutationDeduplicationWindow()
        func mutation(_ number: Int) -> DocumentMutation { DocumentMutation(number: number, command: .add("a")) }
        let many = JSONObject((0..<60).map { (key: "\($0)", value: .integer(1)) })
        let error = CollectionError.conditionFailed(id: "a", revision: 3, found: many)
        for number in 1...100 {
            let failed = MutationOutcome(number: 2 * number, revision: number, error: error, index: 1)
            window.remember(failed, of: mutation(2 * number))
        }
        #expect(window.last == 200 && window.revision == 0)
        #expect(window.outcome(of: mutation(136))?.error == .outdated)
        let recorded = try #require(window.outcome(of: mutation(138)))
        #expect(recorded == MutationOutcome(number: 138, revision: 69, error: error, index: 1))
        #expect(window.outcome(of: mutation(139))?.error == .outdated)
        #expect(window.outcome(of: mutation(202)) == nil)
        let bytes = try recorded.json().count
        #expect(window.byteCount < 32 * (bytes + 24))
    }

    /// Stored digests must stay valid: otherwise repeated writes of clients would be refused after an update of the server.
    @Test(
        "the digest of a command is the same in every version",
        arguments: [
            (
                #"[{"create":{"id":"a","fields":{"id":"a","n":-1,"x":0.5,"e":{"é\n":[null,true,false,"\"",1e16]}},"expiresIn":60}}]"#,
                622_826_478
            ),
            (
                #"[{"increment":{"id":"a","field":"v","by":2,"if":{"v":1},"ifRevision":7}},{"check":{"id":"b","ifAbsent":true}}]"#,
                343_004_072
            ),
            (#"[{"link":{"target":"t","id":"a","field":"tags","in":"others"}}]"#, 1_062_403_273),
        ] as [(String, UInt32)])
    func digests(commands: String, digest: UInt32) throws {
        let mutation = try DocumentMutation(JSONValue(json: Array(#"{"number":1,"commands":\#(commands)}"#.utf8)))
        #expect(mutation.digest == digest)
        #expect(try DocumentMutation(mutation.value) == mutation)
    }
}
