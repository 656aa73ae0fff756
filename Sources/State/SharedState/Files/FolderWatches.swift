#if canImport(Glibc)
    internal import Glibc
    internal import Platform
    internal import Synchronization

    /// Receives notifications of file changes from the system.
    ///
    /// Each folder on the path to a file is watched, including those on the paths of links, because a replaced file or
    /// folder is a new object under the same name. A missing one is awaited in its folder. One thread for the process
    /// reads the notifications; it starts with the first watch, and blocks while there are none.
    final class FolderWatches: Sendable {
        static let shared = FolderWatches()

        /// The inotify instance and the watches, under the lock.
        private struct State {
            /// The inotify instance; nil before the first watch, and if the system provides none.
            var descriptor: Int32?
            var isStarted = false
            var watches: [UInt64: FileWatch] = [:]
            /// The names on the path to each file, in the folders that are watched for it.
            var entries: [UInt64: Set<FileWatch.WatchedEntry>] = [:]
            /// The watches whose path contains a name in a folder, by the system's number of the folder.
            var folders: [Int32: [String: Set<UInt64>]] = [:]
            var lastNumber: UInt64 = 0
        }

        private let state = Mutex(State())

        private init() {}

        /// Watches a file until the result is cancelled.
        func addWatch(_ path: String, _ onChange: @escaping @Sendable () -> Void) -> FileWatch {
            let (watch, descriptor) = state.withLock { state -> (FileWatch, Int32?) in
                state.lastNumber += 1
                let watch = FileWatch(state.lastNumber, path, onChange, in: self)
                state.watches[watch.number] = watch
                var toStart: Int32?
                if !state.isStarted {
                    state.isStarted = true
                    let descriptor = inotify_init1(Int32(IN_CLOEXEC))
                    if descriptor >= 0 {
                        state.descriptor = descriptor
                        toStart = descriptor
                    }
                }
                startWatching(watch, &state)
                return (watch, toStart)
            }
            if let descriptor { startThread(named: "file-watches") { self.read(descriptor) } }
            return watch
        }

        func remove(_ watch: FileWatch) {
            let removed = state.withLock { state -> FileWatch? in
                setEntries(of: watch, to: [], &state)
                return state.watches.removeValue(forKey: watch.number)
            }
            withExtendedLifetime(removed) {}
        }

        /// Watches the current path to the file. Each folder is watched before a name is looked up in it, so that
        /// later changes cause events.
        private func startWatching(_ watch: FileWatch, _ state: inout State) {
            guard let descriptor = state.descriptor else { return }
            let moves = IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF
            var entries: Set<FileWatch.WatchedEntry> = []
            _ = SymlinkResolution.resolve(watch.path) { folder, name, isLast in
                // Added to the existing events of the folder.
                let events = UInt32(isLast ? moves | IN_CLOSE_WRITE : moves) | UInt32(IN_ONLYDIR) | UInt32(IN_MASK_ADD)
                // A folder may be missing or unreadable: its name is watched in the folder above.
                let number = inotify_add_watch(descriptor, folder, events)
                if number >= 0 { entries.insert(FileWatch.WatchedEntry(folder: number, name: name)) }
            }
            setEntries(of: watch, to: entries, &state)
        }

        /// Registers the entries of a watch, and removes its former ones.
        private func setEntries(of watch: FileWatch, to entries: Set<FileWatch.WatchedEntry>, _ state: inout State) {
            for entry in entries {
                state.folders[entry.folder, default: [:]][entry.name, default: []].insert(watch.number)
            }
            let obsolete = (state.entries[watch.number] ?? []).subtracting(entries)
            state.entries[watch.number] = entries.isEmpty ? nil : entries
            for entry in obsolete {
                state.folders[entry.folder]?[entry.name]?.remove(watch.number)
                if state.folders[entry.folder]?[entry.name]?.isEmpty == true {
                    state.folders[entry.folder]?[entry.name] = nil
                }
                guard state.folders[entry.folder]?.isEmpty == true, let descriptor = state.descriptor else { continue }
                state.folders[entry.folder] = nil
                inotify_rm_watch(descriptor, entry.folder)
            }
        }

        /// Reads the notifications of the system, for the lifetime of the process.
        private func read(_ descriptor: Int32) {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 8)
            defer { buffer.deallocate() }
            while true {
                let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                handle(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        }

        private func handle(_ events: UnsafeRawBufferPointer) {
            var changed: [UInt64: FileWatch] = [:]
            let headSize = MemoryLayout<inotify_event>.size
            var offset = 0
            while offset + headSize <= events.count {
                let event = events.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                let name = events[(offset + headSize)..<min(events.count, offset + headSize + Int(event.len))]
                offset += headSize + Int(event.len)
                let file = String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
                for watch in affectedWatches(by: event, named: file) { changed[watch.number] = watch }
            }
            // Called without a lock.
            for watch in changed.values { watch.notifyObserver() }
        }

        /// Returns the watches that an event concerns. If the path to a file may have changed, the new one is watched.
        private func affectedWatches(by event: inotify_event, named name: String) -> [FileWatch] {
            state.withLock { state in
                // Too many events at once: some were lost, and any file may have changed.
                let isOverflow = event.mask & UInt32(IN_Q_OVERFLOW) != 0
                let isRemoved = event.mask & (UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF) | UInt32(IN_IGNORED)) != 0
                let numbers: Set<UInt64>
                if isOverflow {
                    numbers = Set(state.watches.keys)
                } else if isRemoved {
                    numbers = (state.folders[event.wd] ?? [:]).values.reduce(into: []) { $0.formUnion($1) }
                } else {
                    numbers = state.folders[event.wd]?[name] ?? []
                }
                let affectedWatches = numbers.compactMap { state.watches[$0] }
                if isOverflow || event.mask & UInt32(IN_CLOSE_WRITE) == 0 {
                    for watch in affectedWatches { startWatching(watch, &state) }
                }
                return affectedWatches
            }
        }
    }

    /// A watched file.
    final class FileWatch: Sendable {
        /// A name in a folder, by the system's number of the folder.
        struct WatchedEntry: Hashable {
            let folder: Int32
            let name: String
        }

        let number: UInt64
        let path: String
        private let onChange: @Sendable () -> Void
        private let watches: FolderWatches
        private let notification = Mutex(NotificationState.no)

        /// The progress of the notifications of a file's change.
        private enum NotificationState {
            case no
            case yes
            /// Notify once more after the current notification.
            case pendingRepeat
        }

        init(_ number: UInt64, _ path: String, _ onChange: @escaping @Sendable () -> Void, in watches: FolderWatches) {
            self.number = number
            self.path = path
            self.onChange = onChange
            self.watches = watches
        }

        /// Calls `onChange`, never concurrently, and on another thread than the one that reads the notifications: it
        /// may take long.
        func notifyObserver() {
            let isFirst = notification.withLock { notification in
                defer { notification = notification == .no ? .yes : .pendingRepeat }
                return notification == .no
            }
            if isFirst { BlockingThreads.shared.run { self.notifyUntilDone() } }
        }

        private func notifyUntilDone() {
            repeat {
                onChange()
            } while notification.withLock { notification in
                notification = notification == .pendingRepeat ? .yes : .no
                return notification == .yes
            }
        }

        func cancel() { watches.remove(self) }
    }
#endif
