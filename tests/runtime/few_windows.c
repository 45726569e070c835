#include "few_windows.h"
