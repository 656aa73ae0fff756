import Foundation
import TestSupport
import Testing

@testable import SharedState

/// Files that other processes write at critical moments.
@Suite(.timeLimit(.minutes(5)))
struct ContestedFileTests {
    private let file = URL(fileURLWithPath: "/contested/count.json")

    /// Sets the value of the file and returns when no write is pending, on a thread that may block.
    private func setAndSave(_ value: Int, in store: SharedStore) {
        let (file, stored) = (file, store.files.file(file))
        let isSaved = DispatchSemaphore(value: 0)
        Task {
            let shared = Shared(wrappedValue: 0, .fileStorage(file), store: store)
            shared.withLock { $0 = value }
            try await shared.save()
            isSaved.signal()
        }
        isSaved.wait()
        while stored.isBeingWritten { sched_yield() }
    }

    @Test("a value set and saved while a change of the file was read is not undone")
    func setWhileReading() async {
        let (files, file) = (ContestedStorage("1"), file)
        let store = SharedStore(files: files)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: store)
        #expect(shared.wrappedValue == 1)
        files.whileReading { setAndSave(3, in: store) }
        await onThread { files.write("2") }
        #expect(files.text == "3")
        #expect(shared.wrappedValue == 3)
    }

    @Test("a value saved while a change of the file was read equals the file")
    func savedWhileReading() async {
        let (files, file) = (ContestedStorage("1"), file)
        let store = SharedStore(files: files)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: store)
        files.whileReading { setAndSave(1, in: store) }
        await onThread { files.write("2") }
        #expect(files.text == "1")
        #expect(shared.wrappedValue == 1)
    }

    @Test("a value set while the removal of the file was noticed is not undone")
    func setWhileRemoved() async throws {
        let (files, file) = (ContestedStorage("1"), file)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: SharedStore(files: files))
        files.whileReading { shared.withLock { $0 = 3 } }
        files.write(nil)
        try await shared.save()
        #expect(files.text == "3")
        #expect(shared.wrappedValue == 3)
    }

    @Test("an external write right after an own write becomes the value")
    func writtenAfter() async throws {
        let (files, file) = (ContestedStorage("1"), file)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: SharedStore(files: files))
        files.afterReplacing { files.write("7") }
        shared.withLock { $0 = 2 }
        try await shared.save()
        #expect(await eventually { files.text == "\(shared.wrappedValue)" }, "the value equals the file")
    }

    @Test("an external write becomes the value when the own write fails")
    func writeFails() async throws {
        let (files, file) = (ContestedStorage("1"), file)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: SharedStore(files: files))
        files.fill(true)
        files.afterReplacing { files.write("7") }
        shared.withLock { $0 = 2 }
        await #expect(throws: FileStorageError.self) { try await shared.save() }
        #expect(files.text == "7")
        #expect(await eventually { shared.wrappedValue == 7 }, "the value equals the file")
    }

    @Test("a value that could not be written stays while the file is unchanged")
    func unwritten() async throws {
        let (files, file) = (ContestedStorage("1"), file)
        let store = SharedStore(files: files)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: store)
        files.fill(true)
        files.afterReplacing { files.write("1") }
        shared.withLock { $0 = 2 }
        await #expect(throws: FileStorageError.self) { try await shared.save() }
        let stored = store.files.file(file)
        #expect(await eventually { !stored.isBeingWritten }, "no write is pending")
        files.write("1")
        #expect(shared.wrappedValue == 2)
    }

    @Test("values of two types for one file both follow external writes")
    func twoTypes() {
        let files = InMemoryFileStorage([file: Data("1".utf8)])
        let store = SharedStore(files: files)
        @Shared(.fileStorage(file), store: store) var whole = 0
        @Shared(.fileStorage(file), store: store) var broken = 0.0
        files.replace(file, with: Data("2".utf8))
        #expect(whole == 2)
        #expect(broken == 2)
    }

    @Test("a damaged file that save() could not replace is preserved")
    func preservedAfterFailedSave() async throws {
        let (files, file) = (ContestedStorage("damaged"), file)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: SharedStore(files: files))
        #expect((shared.loadError as? FileStorageError)?.code == .damaged)
        files.fill(true)
        await #expect(throws: FileStorageError.self) { try await shared.save() }
        files.fill(false)
        shared.withLock { $0 = 3 }
        #expect(
            await eventually { (shared.saveError as? FileStorageError)?.code == .notOverwritten },
            "the write was rejected")
        #expect(files.text == "damaged")
        try await shared.save()
        #expect(files.text == "3")
        shared.withLock { $0 = 4 }
        try await shared.save()
        #expect(files.text == "4")
    }

    @Test("a change after a save() that replaces a damaged file is written too")
    func changedWhileReplacing() async throws {
        let (files, file) = (ContestedStorage("damaged"), file)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: SharedStore(files: files))
        files.afterReplacing { shared.withLock { $0 = 4 } }
        try await shared.save()
        #expect(await eventually { files.text == "4" }, "the change is in the file")
        #expect(shared.saveError == nil)
    }

    @Test("a file is followed again once it is readable, also when it is unchanged")
    func readableAgain() {
        let (files, file) = (ContestedStorage("1"), file)
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: SharedStore(files: files))
        files.hide(true)
        #expect((shared.loadError as? FileStorageError)?.code == .unreadable)
        files.hide(false)
        #expect(shared.loadError == nil)
        files.write("x")
        #expect((shared.loadError as? FileStorageError)?.code == .damaged)
        files.write("1")
        #expect(shared.loadError == nil)
        files.write("x")
        files.write(nil)
        #expect(shared.loadError == nil)
        #expect(shared.wrappedValue == 0)
    }

    @Test("a required value is what the key loads, also while other wrappers hold the previous one")
    func requiredDuringWrite() async throws {
        let (files, file) = (ContestedStorage("1"), file)
        let store = SharedStore(files: files)
        @Shared(.fileStorage(file), store: store) var count = 0
        #expect(count == 1)
        files.write("2", tells: false)
        let required = try await Shared<Int>(require: .fileStorage(file), store: store)
        #expect(required.wrappedValue == 2)
        #expect(count == 2)
        files.write(nil, tells: false)
        await #expect(throws: MissingValue.self) {
            try await Shared<Int>(require: .fileStorage(file), store: store)
        }
        #expect(count == 2)
        // The system reports the change only now.
        files.write(nil)
        #expect(count == 0)
    }

    @Test("a load for a required value does not hide its change from the file's watcher")
    func requiredHides() async throws {
        let (files, file) = (ContestedStorage("1"), file)
        let store = SharedStore(files: files)
        @Shared(.fileStorage(file), store: store) var count = 0
        files.write("2", tells: false)
        _ = try await Shared<Int>(require: .fileStorage(file), store: store)
        // The system reports the change only now.
        files.write("2")
        #expect(count == 2)
    }

    @Test("a change between the first read and the start of the watch becomes the value")
    func changedBeforeWatched() {
        let (files, file) = (ContestedStorage("1"), file)
        files.whileReading { files.write("2") }
        let shared = Shared(wrappedValue: 0, .fileStorage(file), store: SharedStore(files: files))
        #expect(shared.wrappedValue == 2)
    }

    @Test("a value that another wrapper saved during the first read of a new one is not lost")
    func setBeforeEntered() async {
        let (files, file) = (ContestedStorage("1"), file)
        let store = SharedStore(files: files)
        files.whileReading { setAndSave(3, in: store) }
        let made = RecordedEntries<Shared<Int>>()
        await onThread { made.add(Shared(wrappedValue: 0, .fileStorage(file), store: store)) }
        #expect(files.text == "3")
        #expect(made.entries[0].wrappedValue == 3)
    }
}
