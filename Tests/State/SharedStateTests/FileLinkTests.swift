import Foundation
import TestSupport
import Testing

@testable import SharedState

/// Files behind links, in replaced folders, and with long names.
@Suite(.timeLimit(.minutes(5)))
struct FileLinkTests {
    private let manager = FileManager.default

    private func withFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = manager.temporaryDirectory.appendingPathComponent("FileLinkTests-\(UUID())")
        try manager.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? manager.removeItem(at: folder) }
        try await body(folder.resolvingSymlinksInPath())
    }

    /// Creates a folder with a file that holds a number.
    private func make(_ folder: URL, with number: Int) throws {
        try manager.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("\(number)".utf8).write(to: folder.appendingPathComponent("count.json"))
    }

    #if canImport(Glibc)
        @Test("a write to a link's target becomes the value, and so does another target")
        func link() async throws {
            try await withFolder { folder in
                let (there, link) = (
                    folder.appendingPathComponent("there"), folder.appendingPathComponent("count.json")
                )
                try make(there, with: 1)
                try manager.createSymbolicLink(atPath: link.path, withDestinationPath: "there/count.json")
                @Shared(.fileStorage(link), store: SharedStore()) var count = 0
                #expect(count == 1)
                try make(there, with: 2)
                #expect(await eventually { count == 2 }, "the target was written")
                let other = folder.appendingPathComponent("other")
                try make(other, with: 3)
                try manager.createSymbolicLink(
                    at: folder.appendingPathComponent("next"),
                    withDestinationURL: other.appendingPathComponent("count.json"))
                #expect(rename(folder.path + "/next", link.path) == 0)
                #expect(await eventually { count == 3 }, "the link has another target")
                try make(other, with: 4)
                #expect(await eventually { count == 4 }, "the target was written")
                $count.withLock { $0 = 5 }
                try await $count.save()
                #expect(try manager.destinationOfSymbolicLink(atPath: link.path) == other.path + "/count.json")
                #expect(try Data(contentsOf: other.appendingPathComponent("count.json")) == Data("5".utf8))
            }
        }

        @Test("a linked folder may change its target later")
        func linkedFolder() async throws {
            try await withFolder { folder in
                for number in [1, 2] { try make(folder.appendingPathComponent("v\(number)"), with: number) }
                let current = folder.appendingPathComponent("current")
                try manager.createSymbolicLink(atPath: current.path, withDestinationPath: "v1")
                @Shared(.fileStorage(current.appendingPathComponent("count.json")), store: SharedStore()) var count = 0
                #expect(count == 1)
                try manager.createSymbolicLink(atPath: folder.path + "/next", withDestinationPath: "v2")
                #expect(rename(folder.path + "/next", current.path) == 0)
                #expect(await eventually { count == 2 }, "the link has the second target")
                try make(folder.appendingPathComponent("v2"), with: 3)
                #expect(await eventually { count == 3 }, "the second is followed")
            }
        }

        @Test("a folder further up may be replaced by another")
        func grandparent() async throws {
            try await withFolder { folder in
                let (old, new) = (folder.appendingPathComponent("app"), folder.appendingPathComponent("other"))
                for (place, number) in [(old, 1), (new, 2)] {
                    try make(place.appendingPathComponent("data"), with: number)
                }
                @Shared(.fileStorage(old.appendingPathComponent("data/count.json")), store: SharedStore()) var count = 0
                #expect(count == 1)
                try manager.moveItem(at: old, to: folder.appendingPathComponent("before"))
                try manager.moveItem(at: new, to: old)
                #expect(await eventually { count == 2 }, "the other folder's file is read")
                try make(old.appendingPathComponent("data"), with: 3)
                #expect(await eventually { count == 3 }, "its changes are followed")
            }
        }

        @Test("the values of a file and of a link to it follow each other")
        func twoNames() async throws {
            try await withFolder { folder in
                let (file, link) = (
                    folder.appendingPathComponent("count.json"), folder.appendingPathComponent("link.json")
                )
                try make(folder, with: 1)
                try manager.createSymbolicLink(at: link, withDestinationURL: file)
                let store = SharedStore()
                @Shared(.fileStorage(file), store: store) var first = 0
                @Shared(.fileStorage(link), store: store) var second = 0
                $second.withLock { $0 = 2 }
                try await $second.save()
                #expect(await eventually { first == 2 }, "one value is the other's saved value")
                $first.withLock { $0 = 3 }
                try await $first.save()
                #expect(await eventually { second == 3 }, "and back")
            }
        }

        @Test("a file that is slow to decode does not delay notifications of others")
        func slowDecoding() async throws {
            try await withFolder { folder in
                let (slow, quick) = (folder.appendingPathComponent("slow"), folder.appendingPathComponent("quick"))
                for file in [slow, quick] { try Data("1".utf8).write(to: file) }
                let (begun, gate) = (RecordedEntries<Int>(), DispatchSemaphore(value: 0))
                let key = FileStorageKey<Int>.fileStorage(
                    slow,
                    decode: { data in
                        if data == Data("2".utf8) {
                            begun.add(1)
                            gate.wait()
                        }
                        return Int(String(decoding: data, as: UTF8.self)) ?? 0
                    }, encode: { Data("\($0)".utf8) })
                @Shared(key, store: SharedStore()) var first = 0
                @Shared(.fileStorage(quick), store: SharedStore()) var second = 0
                try Data("2".utf8).write(to: slow)
                #expect(await eventually { begun.count == 1 }, "the slow file is being decoded")
                try Data("2".utf8).write(to: quick)
                #expect(await eventually { second == 2 }, "the other file's change is noticed")
                gate.signal()
                #expect(await eventually { first == 2 }, "the slow file's change is noticed")
            }
        }
    #endif

    @Test("a file with a name of the maximum length can be saved", arguments: [10, 43, 44, 64, 65, 234, 255])
    func longName(length: Int) async throws {
        try await withFolder { folder in
            let file = folder.appendingPathComponent(String(repeating: "n", count: length))
            let shared = Shared(wrappedValue: 0, .fileStorage(file), store: SharedStore())
            shared.withLock { $0 = 1 }
            await #expect(throws: Never.self) { try await shared.save() }
            let names = try manager.contentsOfDirectory(atPath: folder.path)
            #expect(names == [file.lastPathComponent])
        }
    }

    @Test("a link to a missing file stays a link, also in a missing folder")
    func danglingLink() async throws {
        try await withFolder { folder in
            let (target, link) = (
                folder.appendingPathComponent("a/count.json"), folder.appendingPathComponent("count.json")
            )
            try manager.createSymbolicLink(atPath: link.path, withDestinationPath: "./b/../a/count.json")
            let shared = Shared(wrappedValue: 0, .fileStorage(link), store: SharedStore())
            shared.withLock { $0 = 1 }
            try await shared.save()
            #expect(try Data(contentsOf: target) == Data("1".utf8))
            #expect(try manager.destinationOfSymbolicLink(atPath: link.path) == "./b/../a/count.json")
            // By the link's relative target, through a folder that was missing too.
            #expect(try Data(contentsOf: link) == Data("1".utf8))
            try await shared.load()
            #expect(shared.wrappedValue == 1)
        }
    }

    @Test("circular links are an error, and stay")
    func linkCycle() async throws {
        try await withFolder { folder in
            let (one, other) = (folder.appendingPathComponent("a"), folder.appendingPathComponent("b"))
            try manager.createSymbolicLink(at: one, withDestinationURL: other)
            try manager.createSymbolicLink(at: other, withDestinationURL: one)
            #expect(throws: PrivateFile.Failure.self) { try DiskFileStorage().replace(one, with: Data("1".utf8)) }
            let target = try manager.destinationOfSymbolicLink(atPath: one.path)
            #expect(target == other.path)
        }
    }

    @Test("path resolution follows links, and names each folder before it is read")
    func pathChange() async throws {
        try await withFolder { folder in
            try make(folder.appendingPathComponent("there"), with: 1)
            try manager.createSymbolicLink(atPath: folder.path + "/link", withDestinationPath: "here/../there")
            var steps: [String] = []
            let end = SymlinkResolution.resolve(folder.path + "/./link/count.json") { folder, name, isLast in
                steps.append("\(folder)/\(name)\(isLast ? "!" : "")")
            }
            #expect(end == folder.path + "/there/count.json")
            let expected = ["link", "here", "there", "there/count.json!"].map { "\(folder.path)/\($0)" }
            #expect(Array(steps.suffix(4)) == expected)
            #expect(SymlinkResolution.resolve("/no folder/../a file/") == "/a file")
            #expect(SymlinkResolution.resolve("count.json") == manager.currentDirectoryPath + "/count.json")
        }
    }
}
