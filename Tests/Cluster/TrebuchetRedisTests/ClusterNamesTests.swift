import Testing
import TrebuchetCluster

/// Names of nodes and slots.
struct ClusterNamesTests {
    @Test("a cluster node is one incarnation of a name, and is parsed from its description")
    func nodes() throws {
        let (one, other) = (try ClusterNode(name: "east-1.a_B"), try ClusterNode(name: "east-1.a_B"))
        #expect(one != other && one.name == other.name)
        #expect(one.incarnation.utf8.count == 32)
        #expect(ClusterNode(one.description) == one)
        for name in ["", "a b", "é", "a#b", "{a}", String(repeating: "a", count: 65)] {
            #expect(throws: ClusterEngineError.self) { try ClusterNode(name: name) }
            #expect(ClusterNode("\(name)#\(one.incarnation)") == nil)
        }
        for text in [
            "", "a", "a#", "a#\(one.incarnation)#", "a#\(one.incarnation.uppercased())x",
            "a#" + String(repeating: "g", count: 32),
        ] {
            #expect(ClusterNode(text) == nil, "\(text)")
        }
    }

    @Test("a name has the same slot in every version, and names are spread over all slots")
    func slots() {
        #expect(["", "todos", "é", "e\u{301}"].map { ClusterSlot(of: $0).number } == [503, 158, 396, 952])
        var counts = [Int](repeating: 0, count: ClusterSlot.count)
        for index in 0..<102_400 { counts[ClusterSlot(of: "actor-\(index)").number] += 1 }
        // A hundred names each; the standard deviation is ten.
        #expect(counts.min()! > 50 && counts.max()! < 160, "\(counts.min()!) to \(counts.max()!)")
        #expect(ClusterSlot(1_024) == nil && ClusterSlot(-1) == nil && ClusterSlot(1_023)?.description == "s1023")
    }

    @Test("only the text in the first braces of a name determines its slot")
    func tags() {
        let slot = ClusterSlot(of: "collections/todos")
        for name in [
            "views/{collections/todos}/1", "{collections/todos}", "a}{collections/todos}{b}", "{collections/todos}}",
        ] {
            #expect(ClusterSlot(of: name) == slot, "\(name)")
        }
        #expect(ClusterSlot(of: "{é}") == ClusterSlot(of: "é"))
        // These have no text in braces.
        #expect(["{}", "{a", "a}", "}{"].map { ClusterSlot(of: $0).number } == [344, 316, 14, 988])
    }

    @Test("log names are equal when their bytes are equal")
    func logs() {
        #expect(ClusterLog("é") != ClusterLog("e\u{301}"))
        #expect(ClusterLog("é") == ClusterLog("\u{e9}"))
    }
}
