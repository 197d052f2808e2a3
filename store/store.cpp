#include "store/store.hpp"

#include <utility>

#include "store/sqlite_store.hpp"

namespace topolet::store {

Result<std::unique_ptr<Store>> Store::open(const StoreOptions& options) {
  auto store = std::make_unique<SqliteStore>(options);
  if (Status opened = store->open(); !opened) return opened.error();
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::unique_ptr<Store>> Store::open_detached(const StoreOptions& options, const Error& why) {
  auto store = std::make_unique<SqliteStore>(options);
  if (Status opened = store->open_detached(why); !opened) return opened.error();
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::filesystem::path> Store::reopen(const FileLoss& loss, const LastNumbers&, std::int64_t) {
  return Error{Code::kUnimplemented, "a database without a file cannot be opened again: " + loss.what};
}

Result<std::unique_ptr<Store>> Store::open_in_memory(const std::string& boot_id, std::int64_t now_ms) {
  auto store = std::make_unique<SqliteStore>(StoreOptions{.directory = {}, .boot_id = boot_id, .now_ms = now_ms});
  if (Status opened = store->open_in_memory(); !opened) return opened.error();
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace topolet::store
